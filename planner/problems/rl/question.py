"""The scenario of `problem: rl`: answers to write, a model to learn, and chips for both pools."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from planner.catalogue.training.training_stacks import rl_framework
from planner.problems.training import PRECISIONS, ParameterState, StackField, TrainingChoose
from planner.scenario.keys import fields
from planner.scenario.keys.model_keys import ModelDescription, ModelField
from planner.scenario.keys.references import ProfileField
from planner.scenario.keys.system_keys import SystemField
from planner.scenario.keys.uncertain import Distributions

POLICIES = ("on", "off")
BLOCK = 64  # tokens; packed sequences are padded to a multiple
FORWARDS = 2  # of the policy and of a reference, as GRPO with a penalty on their distance has them


class RlWork(fields.Record):
    """Workload of one reinforcement-learning step: rollouts, batch and token lengths."""

    COUNTS: ClassVar[Mapping[str, str]] = {"rollouts": "seq", "global_batch": "seq"}

    rollouts: fields.Count = Field(description="answers written in a step [seq]")
    global_batch: fields.Count | None = Field(
        None, description="answers of one optimiser step [seq]; all of them when absent"
    )
    prompt: Annotated[float, fields.Quantity("tokens", least=1.0)] = Field(
        description="mean length of a prompt [token]"
    )
    answer: Annotated[float, fields.Quantity("tokens", least=1.0)] = Field(
        description="mean length of an answer [token]"
    )
    most: Annotated[float, fields.Quantity("tokens", least=1.0)] = Field(
        description="length at which an answer is cut off [token]"
    )

    @model_validator(mode="after")
    def _agrees(self) -> RlWork:
        faults: fields.Faults = []
        if self.answer > self.most:
            words = f"answers of {self.answer:g} tokens are cut off at {self.most:g} (most)"
            faults.append((("answer",), words))
        if self.rollouts % self.batch:
            words = (
                f"{self.rollouts} rollouts are no whole number of batches of {self.batch}; one "
                "answer is learned from once"
            )
            faults.append((("global_batch",), words))
        return fields.check_faults(self, faults)

    @property
    def batch(self) -> int:
        """Answers of one optimiser step [seq]."""
        return self.global_batch or self.rollouts

    @property
    def updates(self) -> int:
        """Optimiser steps of a step of reinforcement learning."""
        return self.rollouts // self.batch

    @property
    def sequence(self) -> int:
        """Mean tokens of a prompt and its answer, padded as context parallelism needs [token]."""
        return BLOCK * math.ceil((self.prompt + self.answer) / BLOCK)


class RolloutPool(fields.Record):
    """Options of the rollout pool, as in `problem: serving`."""

    tp: fields.ListKey | None = Field(
        None, description="chips that share every matrix of a replica"
    )
    pp: fields.ListKey | None = Field(None, description="stages of a replica; 1 when absent")
    weights: fields.Dtypes | None = Field(None, description="dtype of the weights")
    profile: ProfileField = Field("auto", description="a named, dated calibration, or a file")


class TrainingPool(fields.Record):
    """Options of the training pool, as in `problem: training`."""

    precision: Annotated[str, fields.EnumKey(PRECISIONS)] = Field(
        "bf16", description="format of the matrix products"
    )
    state: ParameterState = Field(default_factory=ParameterState, description="bytes per parameter")
    choose: TrainingChoose = Field(
        default_factory=TrainingChoose, description="limits on, or values of, choices"
    )
    profile: StackField = "auto"


class RlQuestion(fields.QuestionRecord):
    """One question of reinforcement learning in base units (s, token, chip, USD); frozen."""

    COUNTS: ClassVar[Mapping[str, str]] = {"chips": "chip", "split": "chip", "unit": "chip"}

    problem: fields.ProblemName[Literal["rl"]]
    model: ModelField = Field(description="a catalogue name, or a path to a Hugging Face config")
    system: SystemField = Field(description="a catalogue name, or a description")
    chips: fields.Count = Field(description="chips of both pools")
    work: RlWork = Field(description="what a step does")
    policy: Annotated[str, fields.EnumKey(POLICIES)] = Field(
        "on",
        description="on: the same chips write, then learn; off: two pools side by side, answers "
        "are of weights `lag` steps old",
    )
    lag: fields.Count = Field(
        1, description="off policy: with 2 and more the next answers begin as others end"
    )
    forwards: Annotated[int, fields.IntegerField(least=0)] = Field(
        FORWARDS, description="forward passes that score the answers before they are learned from"
    )
    framework: str = Field(
        "none", description="what is added to both pools: a measured framework, or none"
    )
    rollout: RolloutPool = Field(default_factory=RolloutPool, description="the pool that writes")
    training: TrainingPool = Field(default_factory=TrainingPool, description="the pool that learns")
    split: fields.ListKey | None = Field(
        None, description="off policy: chips that write, to try; all splits when absent"
    )
    unit: fields.Count | None = Field(
        None, description="chips that pools are multiples of; a machine's when absent"
    )
    steps: fields.Count | None = Field(None, description="of the whole run; gives days and money")
    price: fields.ListedRent = None
    uncertain: Distributions = None

    @field_validator("framework")
    @classmethod
    def _in_catalogue(cls, value: str) -> str:
        return rl_framework(value).name

    @model_validator(mode="after")
    def _agrees(self) -> RlQuestion:
        faults: fields.Faults = []
        if self.policy == "on":
            faults += [
                ((key,), "on policy every chip writes and learns: leave it out, or policy: off")
                for key, given in (("split", self.split is not None), ("lag", self.lag > 1))
                if given
            ]
        if isinstance(self.model, ModelDescription) and self.model.like is None:
            words = "training needs the layers of a model: give a catalogue name or a config.json"
            faults.append((("model",), words))
        if isinstance(self.system, tuple):
            faults.append((("system",), "give one system: both pools are of its chips"))
        if self.unit is not None and self.chips % self.unit:
            faults.append((("unit",), f"{self.chips} chips are no multiple of {self.unit}"))
        return fields.check_faults(self, faults)


QUESTION = RlQuestion
