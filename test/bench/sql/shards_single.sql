-- One call each, of those that a client makes most often.
SELECT tq.enqueue('bench/w', '{}') AS created \gset
SELECT task_id AS taken FROM tq.claim_work('bench/w', 'g', 'w' || :client_id::text, 1) \gset
SELECT outcome FROM tq.resolve(ARRAY[:taken]::tq.slugid[], ARRAY[0]);
SELECT tq.status(:created);
