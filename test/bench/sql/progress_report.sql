-- The progress of a run, each client of runs of its own.
\set k :k + 1
\set place :client_id * :each + :k
SELECT tq.report_progress(r.task_id, 0, :done, 100, 'a message') FROM progress_run AS r WHERE r.n = :place;
