-- The status of a task, each client of tasks of its own.
\set k :k + 1
\set place :client_id * :each + :k
SELECT tq.status(r.task_id) FROM progress_run AS r WHERE r.n = :place;
