"""Callables that take a tensor, or a container of tensors, and neither traverse it nor keep its graph.

What they are given is *used*, as a logged number is, but no gradient flows from the use: a total that only ever reaches
one of these is bookkeeping. Sources: the documentation of each library, named beside the entry; the builtins and numpy
are checked in ``tests/analysis/test_knowledge_consumers.py``.
"""

from __future__ import annotations

BUILTINS: frozenset[str] = frozenset(
    {
        "print", "float", "int", "bool", "complex", "str", "repr", "ascii", "format", "len", "isinstance", "issubclass",
        "type", "id", "hash", "hasattr", "callable", "any", "all", "range", "bin", "hex",
    }
)  # fmt: skip
"""They look at the value. The result is a number, a string or a type (https://docs.python.org/3/library/functions.html).
"""

BUILTINS_PASSING_ON: frozenset[str] = frozenset(
    {
        "sum", "max", "min", "sorted", "abs", "pow", "list", "tuple", "set", "frozenset", "dict", "zip", "enumerate",
        "reversed", "iter", "next", "map", "filter", "getattr", "vars",
    }
)  # fmt: skip
"""Their result is, or holds, a tensor with the graph: ``sum(losses)`` adds, ``max(losses)`` hands one of them on."""

DOTTED_PREFIXES: frozenset[str] = frozenset(
    {
        # The standard library.
        "math.", "cmath.", "statistics.", "logging.", "warnings.", "time.", "datetime.", "json.", "pprint.", "os.",
        "sys.", "io.", "csv.", "traceback.", "re.", "string.",
        # Numbers and pictures. numpy refuses a tensor that requires grad: what reaches it has no graph or raises.
        "numpy.", "np.", "scipy.", "sklearn.", "pandas.", "pd.", "matplotlib.", "plt.", "seaborn.", "sns.", "PIL.",
        "plotly.", "cv2.", "imageio.",
        # Trackers. Scalars become floats, the rest becomes numpy arrays: https://docs.wandb.ai/ref/python/log,
        # https://mlflow.org/docs/latest/python_api/mlflow.html#mlflow.log_metric,
        # https://www.comet.com/docs/v2/api-and-sdk/python-sdk/reference/Experiment/,
        # https://docs.swanlab.cn/en/api/py-log.html. wandb kept the graph before 0.8.2
        # (https://github.com/wandb/wandb/issues/354).
        "wandb.", "mlflow.", "comet_ml.", "neptune.", "aim.", "swanlab.", "clearml.", "dvclive.", "trackio.",
        "tensorboard_logger.", "visdom.",
        # Terminals.
        "tqdm.", "rich.", "loguru.", "absl.logging.", "termcolor.", "click.echo", "tabulate.", "prettytable.",
    }
)  # fmt: skip

DOTTED: frozenset[str] = frozenset(
    {
        # https://pytorch.org/docs/stable/generated/torch.save.html: it writes values and whether they require grad.
        "torch.save", "torch.is_tensor", "torch.isnan", "torch.isinf", "torch.isfinite", "torch.numel", "torch.equal",
        "torch.allclose", "torch.is_floating_point", "torch.is_complex", "torch.set_printoptions",
        "torch.testing.assert_close", "torch.argmax", "torch.argmin", "torch.cuda.synchronize",
        "torch.cuda.empty_cache",
        "torchvision.utils.save_image", "torchvision.utils.make_grid", "torchaudio.save", "torch.onnx.export",
        # Collectives have no graph: https://pytorch.org/docs/stable/distributed.html#collective-functions.
        "torch.distributed.all_gather", "torch.distributed.all_reduce", "torch.distributed.reduce",
        "torch.distributed.broadcast", "torch.distributed.gather", "torch.distributed.barrier",
        "gc.collect", "copy.deepcopy", "pickle.dump", "pickle.dumps", "joblib.dump", "sys.getsizeof",
        "torch_xla.core.xla_model.master_print",
    }
)  # fmt: skip
"""``copy.deepcopy`` of a tensor with a graph raises, so it never hands one on. ``torchvision.utils.make_grid`` and
``save_image`` run under ``no_grad``."""

CHANGE_IN_PLACE: frozenset[str] = frozenset(
    {
        "torch.distributed.all_reduce",
        "torch.distributed.reduce",
        "torch.distributed.broadcast",
    }
)
"""They overwrite their argument and record nothing, so a graph on it would give wrong gradients: it is given a detached
tensor, or a value that is only logged."""

METHODS: frozenset[str] = frozenset(
    {
        # https://pytorch.org/docs/stable/tensorboard.html: values pass through ``make_np``, which detaches.
        "add_scalar", "add_scalars", "add_histogram", "add_image", "add_images", "add_figure", "add_text", "add_audio",
        "add_video", "add_embedding", "add_pr_curve", "add_mesh", "add_graph", "add_hparams", "add_custom_scalars",
        # https://tqdm.github.io/docs/tqdm/#set_postfix: formatted to strings at once.
        "set_postfix", "set_postfix_str", "set_description", "set_description_str",
        # mlflow, comet, Lightning loggers, Accelerate's trackers, clearml, neptune.
        "log_metric", "log_metrics", "log_scalar", "log_image", "log_images", "log_text", "log_table", "log_histogram",
        "log_param", "log_params", "log_artifact", "log_other", "log_hyperparams", "report_scalar", "report_value",
        "log_value", "scalar_summary", "image_summary", "histo_summary",
        # Visdom: https://github.com/fossasia/visdom#visdom-arguments-python-only.
        "plot_current_losses", "print_current_losses", "display_current_results",
        # LightningModule.log and log_dict detach: https://lightning.ai/docs/pytorch/stable/extensions/logging.html.
        "log_dict",
    }
)  # fmt: skip
"""Method names that tell enough alone. Where the receiver is a class of the project, its method is run instead.
Lightning's ``log`` and ``log_dict`` keep the graph with ``enable_graph=True``."""

LOGGER_METHODS: frozenset[str] = frozenset(
    {
        "debug", "info", "warning", "warn", "error", "critical", "exception", "log", "write", "print", "success",
        "track", "report",
    }
)  # fmt: skip
"""Method names that tell enough together with a receiver from LOGGER_RECEIVERS."""

LOGGER_RECEIVERS: frozenset[str] = frozenset(
    {
        "logging", "logger", "log", "_logger", "LOGGER", "_LOGGER", "LOG", "wandb", "run", "wandb_run", "writer",
        "tb_writer", "summary_writer", "tensorboard", "experiment", "accelerator", "fabric", "tracker", "mlflow",
        "tqdm",
        "pbar", "progress_bar", "bar", "console", "sys.stdout", "sys.stderr", "vis", "viz", "file", "log_file", "self",
    }
)  # fmt: skip
"""Last part of the receiver, without ``self.``. ``self`` stands for LightningModule's ``self.log`` alone."""

KEEPERS: frozenset[str] = frozenset(
    {
        "timm.utils.AverageMeter",
        "timm.utils.metrics.AverageMeter",
        "torchnet.meter.AverageValueMeter",
        "torchnet.meter.MovingAverageValueMeter",
        "collections.deque",
        "queue.Queue",
        "rich.progress.Progress.update",
    }
)
"""They keep what they are given, graph and all. The meters hold the last value and the running sum:
``self.sum += val * n`` (timm/utils/metrics.py, torchnet/meter/averagevaluemeter.py)."""

CONTAINER_METHODS: frozenset[str] = frozenset(
    {
        "append",
        "appendleft",
        "extend",
        "extendleft",
        "insert",
        "add",
        "update",
        "setdefault",
        "put",
        "put_nowait",
        "push",
    }
)
"""Methods of containers that keep their argument."""

REFUSES_GRAPH: frozenset[str] = frozenset(
    {
        "numpy.array", "numpy.asarray", "numpy.mean", "numpy.sum", "numpy.std", "numpy.median", "numpy.max",
        "numpy.min",
        "numpy.append", "numpy.concatenate", "numpy.stack", "numpy.sqrt", "numpy.exp", "numpy.log",
    }
)  # fmt: skip
"""``RuntimeError: Can't call numpy() on Tensor that requires grad`` for a tensor with a graph, also within a list. A
list that such a call averages without error holds nothing with a graph."""
