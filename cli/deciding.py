"""The options that say how a model is used, taken together and held against the model before anything begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.models.options import ModelOptions


def model_options(
    model: str | None,
    *,
    adapter: str | None,
    think: bool,
    allow_remote: bool,
    send_values: bool,
    price_in: float,
    price_out: float,
    model_seconds: float,
) -> ModelOptions:
    """The options, for a job. ModelError where a model of that name can't be used so."""
    from agent.models.options import ModelOptions

    options = ModelOptions(adapter, think, allow_remote, send_values, price_in, price_out, model_seconds)
    if options != ModelOptions() or (model is not None and "://" in model):
        from agent.models.open import check_options  # loads a native library

        check_options(model, options)
    return options
