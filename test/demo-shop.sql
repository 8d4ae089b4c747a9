-- demo-shop.sql: a shop, whose queues stand beside the build behind the pages of
-- test/demo --web: each second some tasks are created, claimed, and end; some fail.
CREATE TEMP TABLE shop (queue text, name text, rate float8, seconds float8, failing float8, error text);
INSERT INTO shop VALUES
	('shop/mail', 'send receipt', 2.5, 1.5, 0.02, 'no answer of 10.0.4.%s after 3000 ms'),
	('shop/invoice', 'render invoice', 0.8, 3, 0.01, 'font Inter-%s is missing'),
	('shop/thumbnail', 'resize picture', 4, 1, 0.005, 'the picture has %s bytes, and no end'),
	('shop/payment', 'capture payment', 1.2, 2, 0.03, 'the bank declined: code %s'),
	('search/index', 'index product', 3, 1, 0, ''),
	('report/daily', 'sum up sales', 0.1, 12, 0.05, 'division by zero in row %s');
SELECT tq.set_queue(queue, '{"claimTimeout": "1 min"}') FROM shop;
CREATE TEMP TABLE taken (task_id tq.slugid, run_id int, queue text, ends timestamptz);
CREATE FUNCTION pg_temp.shop() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	line shop;
	ended jsonb;
BEGIN
	FOR line IN TABLE shop LOOP
		PERFORM tq.enqueue(line.queue, jsonb_build_object('order', 1000 + n), name => line.name, tags => jsonb_build_object('customer', (random() * 40)::int::text))
		FROM generate_series(1, floor(line.rate + random())::int) AS n;
		INSERT INTO taken SELECT c.task_id, c.run_id, line.queue, now() + line.seconds * (0.4 + 1.2 * random()) * interval '1 s'
		FROM generate_series(1, 3) AS w, tq.claim_work(line.queue, 'eu-1', 'shop-' || w, ceil(line.rate / 2)::int) AS c;
	END LOOP;
	WITH done AS (
		DELETE FROM taken t WHERE t.ends <= now() RETURNING t.*
	)
	SELECT jsonb_agg(jsonb_build_object('taskId', d.task_id, 'runId', d.run_id) || CASE WHEN random() < s.failing
		THEN jsonb_build_object('reason', 'failed-terminal', 'errorMessage', format(s.error, 1 + (random() * 200)::int)) ELSE '{"reason": "completed"}' END)
	INTO ended FROM done d JOIN shop s USING (queue);
	PERFORM count(*) FROM tq.resolve(coalesce(ended, '[]'));
END
$$;
SELECT pg_temp.shop() \watch 1
