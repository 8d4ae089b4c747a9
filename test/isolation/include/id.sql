-- id() returns a readable slugid.
CREATE OR REPLACE FUNCTION id(name text) RETURNS tq.slugid LANGUAGE sql IMMUTABLE AS
	$$ SELECT (rpad(name, 8, '_') || 'QAGAAAAAAAAAAA')::tq.slugid $$;
