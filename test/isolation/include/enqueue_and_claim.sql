-- enqueue() makes a task; claim() claims up to n tasks of the queue.
include empty id
CREATE OR REPLACE FUNCTION enqueue(name text, priority text DEFAULT 'lowest') RETURNS SETOF void
	LANGUAGE sql AS $$ SELECT FROM tq.enqueue('iso/w', task_id => id(name), priority => enqueue.priority) $$;
CREATE OR REPLACE FUNCTION claim(n int) RETURNS SETOF text LANGUAGE sql AS
	$$ SELECT rtrim(left(task_id::text, 8), '_') FROM tq.claim_work('iso/w', 'g', 'w', n) $$;
