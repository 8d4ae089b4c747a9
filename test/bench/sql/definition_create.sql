-- A task by a whole definition.
SELECT tq.create_task(tq.slugid(), :def);
