"""Makes the extension in the databases of the backends of tq; what goes back does not drop it."""

from typing import Any

from django.contrib.postgres.operations import CreateExtension
from django.db import migrations, models


class MakeExtension(CreateExtension):
    def database_forwards(self, app_label: str, schema_editor: Any, *states: Any) -> None:
        from tq.django.apps import backends

        if schema_editor.connection.alias in {backend.database for backend in backends()}:
            super().database_forwards(app_label, schema_editor, *states)

    def database_backwards(self, *given: Any) -> None:
        pass


class Migration(migrations.Migration):
    initial = True
    operations = [
        MakeExtension("tq"),
        migrations.CreateModel(
            name="TaskEntry",
            fields=[
                ("task_id", models.CharField(max_length=22, primary_key=True, serialize=False))
            ],
            options={
                "verbose_name": "task",
                "managed": False,
                "default_permissions": ("view", "change", "delete"),
            },
        ),
    ]
