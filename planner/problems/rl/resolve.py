"""A question of reinforcement learning with system, price, framework and weights looked up."""

from dataclasses import dataclass
from datetime import date

from planner.architecture.counts import sizes
from planner.architecture.huggingface import read_config
from planner.catalogue import models
from planner.catalogue.listed_prices import Price, default_price, given_price
from planner.catalogue.systems import System
from planner.catalogue.training.training_stacks import RlFramework, rl_framework
from planner.problems.rl.question import RlQuestion
from planner.protocol.plan import DataSource
from planner.scenario.keys.model_keys import ModelDescription
from planner.scenario.keys.references import File
from planner.scenario.keys.system_keys import resolved_system
from planner.scenario.keys.uncertain import LEFT_ASIDE
from planner.text.errors import CatalogueError, FieldError


@dataclass(frozen=True)
class ResolvedRl:
    """Everything that does not depend on the pools; `weight_bytes` are sent after learning."""

    question: RlQuestion
    system: System
    price: Price
    framework: RlFramework
    weight_bytes: float
    data: tuple[DataSource, ...]
    warnings: tuple[str, ...]


def resolve_rl(question: RlQuestion) -> ResolvedRl:
    """A scenario looked up; raises FieldError for what is not known, or not answered."""
    assert not isinstance(question.system, tuple)  # a list is refused as it is read
    system = resolved_system(question.system)
    if isinstance(system, File) or system.file is not None:
        words = "a topology file is not read for learning yet; give a system of the catalogue"
        raise FieldError(("system", words))
    rent = question.price if question.price is not None else system.price
    try:
        price = default_price(system.chip.name) if rent is None else given_price(rent)
    except CatalogueError as error:
        raise FieldError(("price", str(error))) from error
    framework = rl_framework(question.framework)
    data = (
        DataSource(f"price of {system.chip.name}", price.source, price.as_of),
        DataSource(f"framework {framework.name}", framework.source, framework.as_of),
    )
    warnings = [price.warning(date.today()) or ""]
    warnings += [LEFT_ASIDE] * (question.uncertain is not None)
    weights = question.training.state.weights * _parameters(question)
    return ResolvedRl(question, system, price, framework, weights, data,
                      tuple(filter(None, warnings)))  # fmt: skip


def _parameters(question: RlQuestion) -> float:
    """All parameters of the model [param]."""
    name = question.model.like if isinstance(question.model, ModelDescription) else question.model
    assert name is not None  # the question refuses a model without layers
    model = read_config(name.path) if isinstance(name, File) else models.load(name)
    return float(sizes(model).n_total)
