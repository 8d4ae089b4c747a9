-- ---------------------------------------------------------------------------
-- Scopes
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq.grant_scopes(role regrole, scopes text[]) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_grant_scopes' LANGUAGE C;
COMMENT ON FUNCTION tq.grant_scopes(regrole, text[]) IS 'grant scopes to a role and its members; a star at the end of a scope stands for any text';

CREATE FUNCTION tq.revoke_scopes(role regrole, scopes text[]) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_revoke_scopes' LANGUAGE C;
COMMENT ON FUNCTION tq.revoke_scopes(regrole, text[]) IS 'revoke scopes that were granted to a role, each as it was granted';

CREATE FUNCTION tq.grant_queue(role regrole, task_queue_id text, access text) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_grant_queue' LANGUAGE C;
COMMENT ON FUNCTION tq.grant_queue(regrole, text, text) IS 'grant a role the scopes to produce, work, read, manage or join in a queue, or in all whose names begin like that when it ends in a star';

CREATE FUNCTION tq.revoke_queue(role regrole, task_queue_id text, access text) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_revoke_queue' LANGUAGE C;
COMMENT ON FUNCTION tq.revoke_queue(regrole, text, text) IS 'revoke the scopes that grant_queue() with the same arguments grants';

CREATE FUNCTION tq.current_scopes() RETURNS text[]
	AS 'MODULE_PATHNAME', 'tq_current_scopes' LANGUAGE C;
COMMENT ON FUNCTION tq.current_scopes() IS 'the scopes of the caller, without those that others cover';

CREATE FUNCTION tq.satisfies(have text[], required text) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_satisfies' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION tq.satisfies(text[], text) IS 'whether one of these scopes satisfies the required one';
