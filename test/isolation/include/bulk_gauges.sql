-- The counts of two queues.
CREATE OR REPLACE VIEW bulk_gauges AS
	SELECT task_queue_id AS queue, delayed, pending, running FROM tq.queue_stats WHERE task_queue_id IN ('iso/old', 'iso/new') ORDER BY 1 DESC;
