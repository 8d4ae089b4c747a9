"""tq in Django: a backend of django.tasks, the worker of its tasks, and pages of the admin."""

from .backend import Backend, RunFailed, Task

__all__ = ["Backend", "RunFailed", "Task"]
