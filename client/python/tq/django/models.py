from django.db import models


class TaskEntry(models.Model):
    """What the permissions of the admin pages are of: it has no table, and no rows of Django."""

    task_id = models.CharField(primary_key=True, max_length=22)

    class Meta:
        managed = False
        verbose_name = "task"
        default_permissions = ("view", "change", "delete")
