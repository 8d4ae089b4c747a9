-- taken() claims tasks, and returns their names.
CREATE OR REPLACE FUNCTION taken(worker text, n int DEFAULT 5) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(rtrim(left(task_id::text, 8), '_'), ' ' ORDER BY task_id::text) FROM tq.claim_work('iso/g', 'g', worker, n) $$;
