-- Claims rows of a bare table.
WITH claimed AS (
	UPDATE bare SET taken_until = now() + interval '20 min', worker = 'w' || :client_id::text
	WHERE id = ANY (ARRAY(SELECT id FROM bare WHERE taken_until IS NULL ORDER BY id LIMIT :n FOR UPDATE SKIP LOCKED))
	RETURNING id, payload)
SELECT coalesce(array_agg(id), '{}')::text AS ids FROM claimed;
