-- The progress of one run for each client, as often as it can.
\set place :client_id + 1
SELECT tq.report_progress(r.task_id, 0, 1, 100, 'a message') FROM progress_run AS r WHERE r.n = :place;
