-- Claims tasks.
SELECT count(*) FROM tq.claim_work('bench/w', 'g', 'w' || :client_id::text, :n);
