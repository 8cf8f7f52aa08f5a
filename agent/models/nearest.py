"""The trained encoder's own choice: which candidate lies nearest to what is asked about, or that none is near enough.

No word is generated, and the texts are those that the encoder was trained on (`agent.models.column_text`). Its word counts
for what was measured (`agent.models.calibration`), and for nothing with an adapter that nobody measured.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from agent.models.calibration import fit_of
from agent.models.column_text import column_text, field_text
from agent.models.protocol import NONE_OF_THESE, Choice, Encoder, Match, Price


def nearest(encoder: Encoder, match: Match, options: Sequence[str]) -> Choice | None:
    """The likeliest option with the probability of each; the last one is "none of these". None where the encoder was not
    trained to tell, or the last option is another one."""
    if encoder.scale is None or options[-1] != NONE_OF_THESE or len(options) < 2:
        return None
    started = time.monotonic()
    if match.old_column:
        asked = column_text(match.old_column, match.values.get(match.old_column, ()))
        texts = [field_text(option) for option in options[:-1]]
    else:
        asked = field_text(match.new_field)
        texts = [column_text(option, match.values.get(option, ())) for option in options[:-1]]
    vectors = encoder.encode([asked, *texts])
    fit = fit_of(encoder.name, match)
    scores = np.append(vectors[1:] @ vectors[0], encoder.scale.none) * encoder.scale.spread
    scores[-1] += fit.none
    raised = np.exp((scores - scores.max()) / fit.spread)
    shares = tuple(float(share) for share in raised / raised.sum())
    return Choice(int(np.argmax(raised)), shares, Price(seconds=time.monotonic() - started))
