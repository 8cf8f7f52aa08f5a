"""The edge to llama.cpp: weights, a context, tokens in, log-probabilities or vectors out.

All that knows the C interface lives here. It must never print (its errors are kept, the rest of its log is dropped)
and is never given a file that `gguf_file.read_header` has not accepted, since a damaged one can end
the process.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workspace.errors import ModelError

# Read when OpenMP is loaded, so before llama.cpp: threads that wait give their core to the engine's workers.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
import llama_cpp

SEQUENCES = 16  # 0 holds the prompt; the others are branches of it, one an option
BATCH = 512  # tokens a call to llama.cpp
# Computed at once on a CPU: from 64 on another attention kernel is used, and then the score of an answer depends
# on what stands beside it in the batch (by half a nat with the embedded model).
UBATCH = 32
_errors: deque[str] = deque(maxlen=50)


def _remember(level: int, text: bytes, _user: object) -> None:
    if level == 4:  # GGML_LOG_LEVEL_ERROR
        _errors.append(text.decode("utf-8", "replace"))


_CALLBACK = llama_cpp.llama_log_callback(_remember)  # kept: llama.cpp holds only its address
llama_cpp.llama_log_set(_CALLBACK, ctypes.c_void_p(0))
llama_cpp.llama_backend_init()


def offloads() -> bool:
    """True where the installed build can put layers on a GPU (CUDA, Metal, Vulkan)."""
    return bool(llama_cpp.llama_supports_gpu_offload())


def library() -> ctypes.CDLL:
    """llama.cpp's shared library, for what its Python bindings leave out."""
    found: ctypes.CDLL = llama_cpp.llama_cpp._lib
    return found


def system_info() -> str:
    """What the installed build was compiled for, as llama.cpp words it."""
    return " ".join(llama_cpp.llama_print_system_info().decode("utf-8", "replace").split())


def complaint() -> str:
    """The first error in llama.cpp's log since the last load, without the name of the function that wrote
    it; empty if there's none."""
    parts = next((line.strip() for line in _errors if line.strip()), "").split(": ")
    while len(parts) > 1 and ("_" in parts[0] or parts[0] == "error loading model"):
        parts.pop(0)
    return ": ".join(parts)[:200]


def token_counter(path: Path) -> Callable[[str], int]:
    """How many tokens a text is to the model of that file, by its tokenizer alone: no weights are loaded. It stays
    loaded. ModelError where llama.cpp refuses the file."""
    _errors.clear()
    parameters = llama_cpp.llama_model_default_params()
    parameters.vocab_only = True
    handle = llama_cpp.llama_model_load_from_file(os.fsencode(path), parameters)
    if not handle:
        raise ModelError(f"llama.cpp cannot load it: {complaint() or 'no reason given'}", where=str(path))
    vocabulary = llama_cpp.llama_model_get_vocab(handle)
    return lambda text: len(_tokenised(vocabulary, text, special=False))


def _tokenised(vocabulary: Any, text: str, *, special: bool) -> list[int]:
    raw = text.encode("utf-8", "replace")
    room = len(raw) + 8
    buffer = (llama_cpp.llama_token * room)()
    count = llama_cpp.llama_tokenize(vocabulary, raw, len(raw), buffer, room, False, special)
    if count < 0:
        raise ModelError("llama.cpp cannot tokenise the prompt")
    return list(buffer[:count])


class Weights:
    """A model's weights and vocabulary. One may serve several contexts; `close` it after them."""

    def __init__(self, path: Path, gpu_layers: int = 0) -> None:
        """Loads the file; -1 puts all layers on the GPU. ModelError where llama.cpp refuses it."""
        _errors.clear()
        parameters = llama_cpp.llama_model_default_params()
        parameters.n_gpu_layers = 0x7FFFFFFF if gpu_layers < 0 else gpu_layers
        handle = llama_cpp.llama_model_load_from_file(os.fsencode(path), parameters)
        if not handle:
            reason = complaint() or "llama.cpp gives no reason"
            raise ModelError(f"llama.cpp cannot load it: {reason}", where=str(path))
        self.handle = handle
        self.gpu_layers = gpu_layers
        self.vocabulary = llama_cpp.llama_model_get_vocab(handle)
        self.size = llama_cpp.llama_vocab_n_tokens(self.vocabulary)
        self.width = llama_cpp.llama_model_n_embd(handle)
        self.trained_context = llama_cpp.llama_model_n_ctx_train(handle)
        self.parameters = llama_cpp.llama_model_n_params(handle)
        self.begins_with = (
            [llama_cpp.llama_vocab_bos(self.vocabulary)] if llama_cpp.llama_vocab_get_add_bos(self.vocabulary) else []
        )
        self.special = self._special()

    def _special(self) -> dict[int, str]:
        """Ids and texts of the tokens that steer a model: control ones, and user-defined ones that look
        like markup (`<think>`), which llama.cpp would parse out of plain text too."""
        wanted: dict[int, str] = {}
        plain = llama_cpp.LLAMA_TOKEN_ATTR_NORMAL | llama_cpp.LLAMA_TOKEN_ATTR_BYTE
        for token in range(self.size):
            attributes = llama_cpp.llama_vocab_get_attr(self.vocabulary, token)
            if attributes & plain:
                continue
            text = (llama_cpp.llama_vocab_get_text(self.vocabulary, token) or b"").decode("utf-8", "replace")
            defined = attributes & llama_cpp.LLAMA_TOKEN_ATTR_USER_DEFINED
            if not defined or any(mark in text for mark in "<>[]|"):
                wanted[token] = text
        return wanted

    def tokens(self, text: str, *, special: bool) -> list[int]:
        """The text as token ids; control tokens are parsed out of it only where `special`."""
        return _tokenised(self.vocabulary, text, special=special)

    def piece(self, token: int) -> bytes:
        """The bytes a token stands for; empty for a control token."""
        buffer = ctypes.create_string_buffer(256)
        count = llama_cpp.llama_token_to_piece(self.vocabulary, token, buffer, 256, 0, False)
        return buffer.raw[: max(count, 0)]

    def ends(self, token: int) -> bool:
        """True for a token that ends an answer."""
        return bool(llama_cpp.llama_vocab_is_eog(self.vocabulary, token))

    def first_and_last(self) -> tuple[str, str]:
        """The texts of the tokens that begin and end a sequence, for a chat template; empty for none."""
        found = []
        for token in (llama_cpp.llama_vocab_bos(self.vocabulary), llama_cpp.llama_vocab_eos(self.vocabulary)):
            text = llama_cpp.llama_vocab_get_text(self.vocabulary, token) if token >= 0 else b""
            found.append((text or b"").decode("utf-8", "replace"))
        return found[0], found[1]

    def template(self) -> str:
        """The file's chat template; empty where it has none."""
        raw = llama_cpp.llama_model_chat_template(self.handle, None)
        return raw.decode("utf-8", "replace") if raw else ""

    def adapter(self, path: Path) -> Any:
        """A LoRA adapter over these weights, for `Context.adapt`; freed with them. ModelError where it doesn't fit."""
        _errors.clear()
        handle = llama_cpp.llama_adapter_lora_init(self.handle, os.fsencode(path))
        if not handle:
            raise ModelError(f"llama.cpp cannot load the adapter: {complaint() or 'no reason given'}", where=str(path))
        return handle

    def close(self) -> None:
        """Frees the weights; safe to call twice."""
        if self.handle:
            llama_cpp.llama_model_free(self.handle)
            self.handle = None


class Context:
    """A KV cache over some weights: sequence 0 keeps the last prompt, so that what the next prompt
    shares with it is not computed again."""

    def __init__(self, weights: Weights, length: int, threads: int, *, vectors: bool = False) -> None:
        """`length` tokens in all sequences together. ModelError where the memory doesn't suffice."""
        _errors.clear()
        parameters = llama_cpp.llama_context_default_params()
        parameters.n_ctx = length
        parameters.n_batch = min(length, BATCH)
        parameters.n_ubatch = min(length, UBATCH if weights.gpu_layers == 0 else BATCH)
        parameters.n_threads = threads
        parameters.n_threads_batch = threads
        parameters.n_seq_max = SEQUENCES
        parameters.kv_unified = True  # branches share the prompt's cells
        parameters.no_perf = True
        if vectors:
            parameters.embeddings = True
            # llama.cpp's own mean is of what is computed at once alone, which may begin in the midst of a text
            parameters.pooling_type = llama_cpp.LLAMA_POOLING_TYPE_NONE
        self.handle = llama_cpp.llama_init_from_model(weights.handle, parameters)
        if not self.handle:
            raise ModelError(f"llama.cpp cannot open a context of {length} tokens: {complaint()}")
        self.weights = weights
        self.length = length
        self._memory = llama_cpp.llama_get_memory(self.handle)
        self._batch = llama_cpp.llama_batch_init(BATCH, 0, 1)
        self._held: list[int] = []

    def use_threads(self, count: int) -> None:
        """How many threads compute from now on."""
        llama_cpp.llama_set_n_threads(self.handle, count, count)

    def adapt(self, adapter: Any) -> None:
        """Computes with an adapter of the weights from now on. ModelError where llama.cpp refuses."""
        handles = (llama_cpp.llama_adapter_lora_p_ctypes * 1)(adapter)
        if llama_cpp.llama_set_adapters_lora(self.handle, handles, 1, (ctypes.c_float * 1)(1.0)):
            raise ModelError("llama.cpp cannot use the adapter")
        self.forget()

    def prompt(self, tokens: Sequence[int]) -> tuple[NDArray[np.float32], int]:
        """Log-probabilities of the token after the prompt (shape (vocabulary,)), and how many of the
        prompt's tokens were already held."""
        shared = 0
        for old, new in zip(self._held, tokens[:-1], strict=False):
            if old != new:
                break
            shared += 1
        if not llama_cpp.llama_memory_seq_rm(self._memory, 0, shared, -1):
            shared = 0  # a recurrent memory can't be cut back in the middle
            llama_cpp.llama_memory_clear(self._memory, True)
        self._held = list(tokens[:shared])
        last = np.empty(0, np.float32)
        for start in range(shared, len(tokens), BATCH):
            part = tokens[start : start + BATCH]
            final = start + len(part) == len(tokens)
            rows = [(token, start + i, 0, final and i == len(part) - 1) for i, token in enumerate(part)]
            last = self._decode(rows)
            self._held.extend(part)
        return last, shared

    def extend(self, token: int) -> NDArray[np.float32]:
        """Adds a token to the prompt; log-probabilities of the one after it."""
        scores = self._decode([(token, len(self._held), 0, True)])
        self._held.append(token)
        return scores

    def continuations(
        self, first: NDArray[np.float32], answers: Sequence[Sequence[int]], skip: Sequence[int] = ()
    ) -> list[float]:
        """The log-probability of each answer, were it to follow the prompt held: the sum over its tokens
        from number `skip` on (0 where no `skip` is given).

        `first` is what `prompt` returned. The answers are branches of one batch, so that the prompt is
        computed once. Answers are cut to half a batch.
        """
        answers = [answer[: BATCH // 2] for answer in answers]
        skips = skip or [0] * len(answers)
        sums = [float(first[a[0]]) if a and not s else 0.0 for a, s in zip(answers, skips, strict=True)]
        longer = [i for i, answer in enumerate(answers) if len(answer) > 1]
        while longer:
            group: list[int] = []
            rows: list[tuple[int, int, int, bool]] = []
            wanted: list[tuple[int, int, int]] = []  # row in the batch, answer, token that follows it
            while longer and len(group) < SEQUENCES - 1:
                number = longer[0]
                answer = answers[number]
                if rows and len(rows) + len(answer) - 1 > BATCH:
                    break
                longer.pop(0)
                group.append(number)
                llama_cpp.llama_memory_seq_cp(self._memory, 0, len(group), -1, -1)
                for i, token in enumerate(answer[:-1]):
                    scored = i + 1 >= skips[number]
                    if scored:
                        wanted.append((len(rows), number, answer[i + 1]))
                    rows.append((token, len(self._held) + i, len(group), scored))
            self._run(rows)
            for row, number, token in wanted:
                scores = self._scores(row)
                top = float(scores.max())
                sums[number] += float(scores[token]) - top - float(np.log(np.exp(scores - top).sum()))
            for branch in range(1, len(group) + 1):
                llama_cpp.llama_memory_seq_rm(self._memory, branch, -1, -1)
        return sums

    def vectors(self, texts: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Mean of the last hidden states of each text (shape (texts, width)), rows of length 1."""
        found = np.zeros((len(texts), self.weights.width), np.float32)
        waiting = list(range(len(texts)))
        while waiting:
            group: list[int] = []
            rows: list[tuple[int, int, int, bool]] = []
            while waiting and len(group) < SEQUENCES:
                text = texts[waiting[0]][: BATCH // 2]
                if rows and len(rows) + len(text) > BATCH:
                    break
                rows += [(token, i, len(group), True) for i, token in enumerate(text)]
                group.append(waiting.pop(0))
            if not rows:
                continue
            llama_cpp.llama_memory_clear(self._memory, True)
            self._run(rows)
            for row, (_, _, number, _) in enumerate(rows):
                pointer = llama_cpp.llama_get_embeddings_ith(self.handle, row)
                if pointer:
                    found[group[number]] += np.ctypeslib.as_array(pointer, shape=(self.weights.width,))
        norms = np.linalg.norm(found, axis=1, keepdims=True)
        norms[norms == 0] = 1
        found /= norms
        return found

    def _run(self, rows: Sequence[tuple[int, int, int, bool]]) -> None:
        batch = self._batch
        batch.n_tokens = len(rows)
        for i, (token, position, sequence, wanted) in enumerate(rows):
            batch.token[i] = token
            batch.pos[i] = position
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = sequence
            batch.logits[i] = wanted
        code = llama_cpp.llama_decode(self.handle, batch)
        if code:
            self.forget()
            reason = "the context is full" if code == 1 else f"llama.cpp stopped with code {code}"
            raise ModelError(f"the model cannot read the prompt: {reason}")

    def _decode(self, rows: Sequence[tuple[int, int, int, bool]]) -> NDArray[np.float32]:
        """Log-probabilities after the last row; empty where they aren't wanted."""
        self._run(rows)
        if not rows[-1][3]:
            return np.empty(0, np.float32)
        scores = self._scores(len(rows) - 1).astype(np.float32)
        scores -= scores.max()
        scores -= np.log(np.exp(scores).sum())
        return scores

    def _scores(self, row: int) -> NDArray[np.float32]:
        """A view into llama.cpp's memory, valid until the next batch."""
        pointer = llama_cpp.llama_get_logits_ith(self.handle, row)
        if not pointer:
            raise ModelError("llama.cpp returned no scores")
        scores: NDArray[np.float32] = np.ctypeslib.as_array(pointer, shape=(self.weights.size,))
        if not np.isfinite(scores.max()):
            raise ModelError("the model's scores are not numbers")
        return scores

    def forget(self) -> None:
        """Empties the cache."""
        llama_cpp.llama_memory_clear(self._memory, True)
        self._held = []

    def close(self) -> None:
        """Frees the context; safe to call twice."""
        if self.handle:
            llama_cpp.llama_batch_free(self._batch)
            llama_cpp.llama_free(self.handle)
            self.handle = None


class Grammar:
    """A GBNF grammar over a vocabulary, in some state of being filled in."""

    def __init__(self, weights: Weights, text: str) -> None:
        """ModelError with llama.cpp's words where the grammar doesn't parse."""
        if not text.strip():  # llama.cpp takes an empty one for "anything goes"
            raise ModelError("not a GBNF grammar: it is empty")
        with _held_back_stderr() as said:
            handle = llama_cpp.llama_sampler_init_grammar(weights.vocabulary, text.encode("utf-8"), b"root")
        if not handle:
            raise ModelError(f"not a GBNF grammar: {said[0] if said else 'it has no rule root'}")
        self._handle = handle
        self._start = llama_cpp.llama_sampler_clone(handle)
        self._weights = weights

    def restart(self) -> None:
        """Back to the grammar's beginning."""
        llama_cpp.llama_sampler_free(self._handle)
        self._handle = llama_cpp.llama_sampler_clone(self._start)

    def best(self, scores: NDArray[np.float32]) -> int | None:
        """The likeliest token that the grammar allows now; None where it allows none."""
        likely = np.argpartition(scores, -64)[-64:]
        for tokens in (likely, np.arange(len(scores))):
            data = (llama_cpp.llama_token_data * len(tokens))()
            view = np.frombuffer(
                memoryview(data).cast("B"), dtype=np.dtype([("id", "i4"), ("logit", "f4"), ("p", "f4")])
            )
            view["id"] = tokens
            view["logit"] = scores[tokens]
            array = llama_cpp.llama_token_data_array(data, len(tokens), -1, False)
            llama_cpp.llama_sampler_apply(self._handle, ctypes.byref(array))
            allowed = view["logit"]
            if np.isfinite(allowed).any():
                return int(view["id"][int(np.argmax(allowed))])
        return None

    def accept(self, token: int) -> None:
        """Moves on by a token that `best` gave."""
        llama_cpp.llama_sampler_accept(self._handle, token)

    def close(self) -> None:
        """Frees the grammar; safe to call twice."""
        for handle in (self._handle, self._start):
            if handle:
                llama_cpp.llama_sampler_free(handle)
        self._handle = self._start = None


@contextmanager
def _held_back_stderr() -> Iterator[list[str]]:
    """Catches what C code writes to stderr (llama.cpp's grammar parser has no other way); yields a list
    that holds the parser's complaint afterwards. What others wrote meanwhile is passed on."""
    said: list[str] = []
    try:
        kept = os.dup(2)
    except OSError:  # a process without stderr
        yield said
        return
    with tempfile.TemporaryFile() as caught:
        os.dup2(caught.fileno(), 2)
        try:
            yield said
        finally:
            os.dup2(kept, 2)
            caught.seek(0)
            for line in caught.read().splitlines(keepends=True):
                text = line.decode("utf-8", "replace").strip()
                if "grammar" in text or "expecting" in text or "Undefined rule" in text:
                    said.append(text[:200])
                elif not said:
                    os.write(kept, line)
            os.close(kept)
