-- A fuzz target: the credentials of a claim (doc/spec/taskcluster.md 5.7).  There is one
-- claim.  By its first byte an input is
--
--	e	edits of the credentials of that claim: a byte for the key, two for where, one for
--		what: an xor, or, if that is 0, the byte is taken out
--	s	a clientId, a token and a certificate without its end, a line each, which are signed
--		with the secret of the database, so that what follows the signature is reached
--	any	other byte: a JSON text
--
-- In the latter two <C>, <T> and <Z> stand for the clientId, the token and the certificate
-- of that claim, <E> for its expiry, <U> for the same in seconds and <S> for its seed.
-- Only the credentials themselves are valid, or signed ones that say the same of the claim.

SELECT fuzz.set_clock();
SELECT tq.create_task(fuzz.id('claimed'), '{"taskQueueId": "fuzz/c", "created": "2030-01-01T00:00:00Z", "deadline": "2030-01-03T00:00:00Z",
	"scopes": ["fuzz:one", "fuzz:two:*"], "payload": {}, "metadata": {"name": "n", "description": "d", "owner": "o", "source": "https://example.com"}}');
SET tq.credentials = on;
CREATE TABLE fuzz.claim AS
	SELECT c.credentials AS json, c.credentials ->> 'clientId' AS client_id, c.credentials ->> 'accessToken' AS token,
		c.credentials ->> 'certificate' AS certificate, (c.credentials ->> 'certificate')::jsonb AS parsed,
		(c.credentials ->> 'certificate')::jsonb ->> 'expiry' AS expiry
	FROM tq.claim_task(fuzz.id('claimed'), 0, 'g', 'w') c;
RESET tq.credentials;

-- The key of HMAC, padded and combined with its two constants.
CREATE FUNCTION fuzz.pad(key bytea, byte int) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
	SELECT string_agg(set_byte('\x00', 0, byte # CASE WHEN i < length(key) THEN get_byte(key, i) ELSE 0 END), '' ORDER BY i)
	FROM generate_series(0, 63) i $$;
CREATE FUNCTION fuzz.little(send bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
	SELECT string_agg(substr(send, i, 1), '' ORDER BY i DESC) FROM generate_series(1, length(send)) i $$;
CREATE TABLE fuzz.secret AS
	SELECT fuzz.pad(secret, x'36'::int) AS inner, fuzz.pad(secret, x'5c'::int) AS outer,
		fuzz.little(int8send((SELECT system_identifier FROM pg_control_system()))) ||
		fuzz.little(int4send((SELECT oid::bigint::int FROM pg_database WHERE datname = current_database()))) AS header
	FROM tq_internal.secret WHERE until IS NULL;

-- The signature of credentials, as credentials.c describes it.
CREATE FUNCTION fuzz.signature(client_id bytea, token bytea, body bytea) RETURNS text LANGUAGE sql AS $$
	SELECT encode(sha256(s.outer || sha256(s.inner || s.header || fuzz.little(int4send(length(client_id)))
		|| fuzz.little(int4send(length(token))) || '\x00000000' || client_id || token || body)), 'base64')
	FROM fuzz.secret s $$;

DO $$
BEGIN
	IF (SELECT right(certificate, 46) <> fuzz.signature(client_id::bytea, token::bytea, left(certificate, -46)::bytea) || '"}' FROM fuzz.claim) THEN
		PERFORM fuzz.broken('the signature of a claim is not what credentials.c describes');
	END IF;
END $$;

-- A text with the parts of the claim put in; as parts of a JSON text, with `escape`.
CREATE FUNCTION fuzz.filled(template text, escape bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	c fuzz.claim;
BEGIN
	IF template !~ '<[CTZEUS]>' THEN
		RETURN template;
	END IF;
	SELECT * INTO c FROM fuzz.claim;
	IF escape THEN
		c.certificate := replace(c.certificate, '"', '\"');
	END IF;
	RETURN replace(replace(replace(replace(replace(replace(template, '<C>', c.client_id), '<T>', c.token), '<Z>', c.certificate),
		'<E>', c.expiry), '<U>', (c.expiry::bigint / 1000)::text), '<S>', c.parsed ->> 'seed');
END $$;

-- The credentials after the edits of an input; NULL if they are no text any more.
CREATE FUNCTION fuzz.edited(input bytea) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	keys CONSTANT text[] := '{clientId,accessToken,certificate}';
	json jsonb := (SELECT c.json FROM fuzz.claim c);
	key text;
	bytes bytea;
	place int;
BEGIN
	FOR i IN 0 .. least((length(input) - 1) / 4, 8) - 1 LOOP
		key := keys[1 + get_byte(input, 4 * i + 1) % 3];
		bytes := (json ->> key)::bytea;
		IF length(bytes) > 0 THEN
			place := (get_byte(input, 4 * i + 2) * 256 + get_byte(input, 4 * i + 3)) % length(bytes);
			IF get_byte(input, 4 * i + 4) = 0 THEN
				bytes := overlay(bytes PLACING '' FROM place + 1 FOR 1);
			ELSE
				bytes := set_byte(bytes, place, get_byte(bytes, place) # get_byte(input, 4 * i + 4));
			END IF;
			json := json || jsonb_build_object(key, convert_from(bytes, 'UTF8'));
		END IF;
	END LOOP;
	RETURN json;
EXCEPTION WHEN data_exception THEN
	RETURN NULL;
END $$;

-- The credentials that three lines make, with a signature that is right.
CREATE FUNCTION fuzz.signed(text text) RETURNS jsonb LANGUAGE sql AS $$
	SELECT jsonb_build_object('clientId', coalesce(l[1], ''), 'accessToken', coalesce(l[2], ''), 'certificate', coalesce(l[3], '')
		|| fuzz.signature(convert_to(coalesce(l[1], ''), 'UTF8'), convert_to(coalesce(l[2], ''), 'UTF8'), convert_to(coalesce(l[3], ''), 'UTF8')) || '"}')
	FROM regexp_split_to_array(text, '\n') l $$;

-- Whether signed credentials say of the claim what those that it got say.
CREATE FUNCTION fuzz.is_of_claim(given jsonb) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	c fuzz.claim;
	says jsonb := (given ->> 'certificate')::jsonb;
	expiry jsonb := says -> 'expiry';
BEGIN
	SELECT * INTO c FROM fuzz.claim;
	RETURN coalesce(jsonb_typeof(expiry) = 'number' AND (expiry::numeric % 1) = 0
		AND expiry::numeric <= c.expiry::numeric AND expiry::numeric > extract(epoch FROM timestamptz '2030-01-01 00:03:18Z') * 1000
		AND jsonb_typeof(says -> 'seed') = 'string' AND says -> 'seed' = c.parsed -> 'seed'
		AND jsonb_typeof(says -> 'scopes') = 'array' AND NOT jsonb_path_exists(says, 'strict $.scopes[*] ? (@.type() != "string")')
		AND given ->> 'clientId' = regexp_replace(c.client_id, '\d+$', '') || trunc(expiry::numeric / 1000), false);
END $$;

-- Gives credentials to assume(); returns the code of its error, or NULL.
CREATE FUNCTION fuzz.assume(given jsonb, allowed text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
	hint text;
	scopes text[];
	should text[];
BEGIN
	PERFORM tq.assume(fuzz.exact(given));
	scopes := ARRAY(SELECT unnest(tq.current_scopes()) COLLATE "C" x ORDER BY x);
	should := ARRAY(SELECT jsonb_array_elements_text((given ->> 'certificate')::jsonb -> 'scopes') COLLATE "C");
	IF NOT scopes <@ should OR EXISTS (SELECT FROM unnest(should) s WHERE NOT tq_internal.satisfies(scopes, s)) THEN
		PERFORM fuzz.broken('the scopes are not those of the certificate', scopes::text, should::text);
	END IF;
	RAISE EXCEPTION USING ERRCODE = 'FUZZ1';
EXCEPTION
	WHEN SQLSTATE 'FUZZ1' THEN
		RETURN NULL;
	WHEN OTHERS THEN
		GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
		IF left(SQLSTATE, 2) <> ALL (allowed) THEN
			PERFORM fuzz.check_error(SQLSTATE, allowed, SQLERRM, detail, hint);
		END IF;
		RETURN SQLSTATE;
END $$;

-- Gives credentials to resolve(), which takes an array as well; returns its outcome, or an error.
CREATE FUNCTION fuzz.resolve(given jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	outcome text;
	detail text;
	hint text;
BEGIN
	SELECT r.outcome INTO STRICT outcome FROM tq.resolve(ARRAY[fuzz.id('claimed')], ARRAY[0], 'completed', fuzz.exact(given)) r;
	RAISE EXCEPTION USING ERRCODE = 'FUZZ1';
EXCEPTION
	WHEN SQLSTATE 'FUZZ1' THEN
		RETURN outcome;
	WHEN OTHERS THEN
		GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
		PERFORM fuzz.check_error(SQLSTATE, '{TQ400}', SQLERRM, detail, hint);
		RETURN SQLSTATE;
END $$;

CREATE FUNCTION fuzz.credentials(input bytea) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	form text := 'json';
	given jsonb;
	own jsonb := (SELECT c.json FROM fuzz.claim c);
	is_valid bool;
	code text;
	outcome text;
BEGIN
	BEGIN
		IF input = '' THEN
			RETURN 'nothing';
		ELSIF get_byte(input, 0) = ascii('e') THEN
			given := fuzz.edited(input);
		ELSIF get_byte(input, 0) = ascii('s') THEN
			form := 'signed';
			given := fuzz.signed(fuzz.filled(convert_from(substr(input, 2), 'UTF8'), false));
		ELSE
			given := fuzz.filled(convert_from(input, 'UTF8'), true)::jsonb;
		END IF;
	EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
		RETURN 'not JSON';
	END;
	IF given IS NULL THEN
		RETURN 'not text';
	END IF;
	PERFORM fuzz.set_clock();
	IF form = 'signed' THEN
		BEGIN
			is_valid := fuzz.is_of_claim(given);
		EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
			is_valid := false;
		END;
		code := fuzz.assume(given, '{TQ400,TQ403,22,54}');
	ELSE
		is_valid := given = own;
		code := fuzz.assume(given, '{TQ400,TQ403}');
		outcome := fuzz.resolve(given);
		IF (outcome = 'resolved') <> (is_valid OR given IN (jsonb_build_array(own), '[null]')) THEN
			PERFORM fuzz.broken('resolve() answers wrongly', outcome, given::text);
		END IF;
	END IF;
	IF is_valid <> (code IS NULL) THEN
		PERFORM fuzz.broken(CASE WHEN is_valid THEN 'valid credentials are refused' ELSE 'invalid credentials are taken' END, code, given::text);
	END IF;
	RETURN concat_ws(' ', form, coalesce(code, 'valid'), outcome);
END $$;
