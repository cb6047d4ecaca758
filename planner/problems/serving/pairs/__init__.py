"""Which layouts of two pools are run together? Those that read prompts, those that decode."""
