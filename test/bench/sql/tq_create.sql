-- A task by the short way.
SELECT tq.enqueue('bench/w', :payload);
