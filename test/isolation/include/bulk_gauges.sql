-- The counts of two queues.
CREATE OR REPLACE VIEW bulk_gauges AS
	SELECT task_queue_id AS queue, delayed, pending, running FROM unnest(ARRAY['iso/old', 'iso/new']) AS q, tq.queue_counts(q) ORDER BY 1 DESC;
