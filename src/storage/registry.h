/*
 * registry.h
 *	  What a database has in addition to its tasks: names, settings, rights.
 *
 * Decides how queues, workers and policies are interned to numbers, and how
 * each backend caches what is set.  What a setting or a policy means is in
 * core; what a caller may change, the rules and the API decide.
 */
#ifndef TQ_REGISTRY_H
#define TQ_REGISTRY_H

#include "utils/multirangetypes.h"

#include "../core/queue_settings.h"
#include "../shmem/shmem.h"

/* ---- activation.c: begins and ends calls; marks a database as used ---- */

extern bool tq_activation_is_done(void);
extern bool tq_activation_is_committed(void);
extern void tq_activation_do(void);

extern void tq_call_begin(bool read_only);
extern void tq_call_begin_idle(void);

/* Ends what tq_call_begin() began. */
#define tq_call_end() tq_spi_close()

/* ---- queue_table.c: queues, whose names are interned to numbers ---- */

/* The number of a queue. */
typedef struct TqQueueNumber
{
	int32 id;
	char *name;
} TqQueueNumber;

extern int32 tq_queue_find(const char *name);
extern char *tq_queue_name(int32 queue);

/* A queue, and its name. */
typedef struct TqQueueRow
{
	int32 id;
	char *name;
} TqQueueRow;

extern TqQueueRow *tq_queues_first(int max, int *found);
extern int32 tq_queue_intern(const char *name);
extern TqQueueNumber *tq_queue_numbers_of(const char *provisioner, int max,
										  int *found);
extern void tq_queue_seen(int32 queue, TimestampTz now, TimestampTz expires);
extern void tq_queue_changed(int32 queue);
extern void tq_queues_forget(TimestampTz before);

/* ---- queue_settings_table.c: what queues are set to ---- */

typedef struct TqGivenPolicy
{
	TqPolicy policy;
	int retries;         /* TQ_OFF: absent */
	int64_t delay;       /* ms; TQ_OFF: absent */
	char *keys[TQ_KEYS]; /* NULL: absent */
} TqGivenPolicy;

#define TQ_POLICY_BYTES 2000 /* as jsonb, and as text */

extern const char *tq_policy_parse(const Jsonb *json, TqGivenPolicy *given);
extern const char *tq_policy_parse_stored(const Jsonb *json,
										  TqGivenPolicy *given);
extern Jsonb *tq_policy_without_keys(Jsonb *policy);
extern Jsonb *tq_policy_with_keys(Jsonb *stored, char *const *keys);
extern Jsonb *tq_policy_with_default(Jsonb *own, Jsonb *stored_default);
extern bool tq_policy_has_default(const Jsonb *stored);
extern Jsonb *tq_policy_own(Jsonb *stored);

extern const char *tq_duration_parse(const JsonbValue *value, int64 *ms);

/* Settings as they were given. */
typedef struct TqGivenSettings
{
	TqQueueSettings settings;
	Jsonb *policy;  /* of tasks that do not say otherwise; NULL: none */
	Jsonb *weights; /* of fairness keys, all above 0; NULL: none */
} TqGivenSettings;

extern const char *tq_settings_hint(bool of_policy, const char *fault);
extern const char *tq_queue_settings_parse(const Jsonb *json,
										   TqGivenSettings *given);

extern void tq_queue_settings_changed(void);
extern void tq_queue_settings_reload(void);
extern const TqQueueSettings *tq_queue_settings(int32 queue);
extern bool tq_queue_settings_exist(void);
extern bool tq_queue_settings_are_fair(void);
extern double tq_queue_settings_weight(int32 queue, const char *key);
extern int32 *tq_queue_settings_with_moves(uint64 *version, int *found);
extern Jsonb *tq_queue_settings_policy(const char *queue);
extern TqRetention tq_queue_settings_shortest(TqRetention kept);
extern int32 *tq_queue_settings_limited(int *found);
extern int64 tq_queue_settings_longest_claim(void);

/* ---- policy_table.c: policies, interned as they were given ---- */

extern int32 tq_policy_intern(Jsonb *policy, Oid role);
extern Oid tq_policy_creator(int32 id);
extern const TqPolicy *tq_policy_get(int32 id);
extern Jsonb *tq_policy_json(int32 id);
extern int32 *tq_policies_that_retain(int *found);
extern int64 tq_policy_longest_claim(void);

/* ---- worker_table.c: task workers, interned per queue ---- */

/* What a claim needs to know of a worker; cached, and exact. */
typedef struct TqWorkerSeat
{
	int32 id;
	bool is_retired; /* not to be used before it is revived */
	bool is_known;   /* has called claim_work(), or was declared */
	TimestampTz quarantine_until;
	TimestampTz store_after; /* until then nothing about it is stored */
} TqWorkerSeat;

extern void tq_worker_name(int32 worker, char **group, char **name);
extern int32 tq_worker_queue(int32 worker);
extern bool tq_worker_seat_find(int32 queue, const char *group,
								const char *name, TqWorkerSeat *seat);
extern void tq_worker_seat_intern(int32 queue, const char *group,
								  const char *name, TqWorkerSeat *seat);
extern void tq_worker_note(int32 queue, const TqWorkerSeat *seat,
						   TimestampTz seen, const TqRecentClaim *claims,
						   int n);
extern int32 *tq_workers_seen(TimestampTz since, int *n);
extern bool tq_worker_store(int32 queue, const char *group, const char *name,
							TqWorkerSeat *seat, TimestampTz now, bool claims);
extern void tq_worker_activity(int32 worker, TqWorkerActivity *activity);
extern void tq_worker_claims(const TqWorkerActivity *activity, Datum *tasks,
							 Datum *runs);
extern void tq_workers_changed(void);
extern void tq_workers_forget(TimestampTz before);

#define TQ_SEEN_DAY_MS INT64CONST(24 * 60 * 60 * 1000)

/* ---- interned.c: interns, and deletes rows to which nothing refers ---- */

/* What is interned; workers refer to queues, so they come first. */
typedef enum TqInterned
{
	TQ_INTERNED_WORKER,
	TQ_INTERNED_QUEUE,
	TQ_INTERNED_POLICY
} TqInterned;

/*
 * Returns the number of a value, or 0; sets *is_retired if its row has to be
 * revived before it is used.
 */
typedef int32 TqFindNumber(void *value, bool *is_retired);

extern int32 tq_intern(TqInterned kind, TqStatement *insert,
					   const Datum *values, TqFindNumber *find, void *value);
extern void tq_interned_sweep(TimestampTz before, TimestampTz now);
extern void tq_times_set_back(bool is_first);

/* ---- access_table.c: scopes of roles, secrets, and the audit ---- */

typedef struct TqGrant
{
	Oid role; /* may have been dropped */
	char *scope;
} TqGrant;

/* Differs once the table, which is watched, may have changed. */
extern const uint64 *const tq_grants_generation;

extern void tq_grants_watch(void);
extern void tq_grants_changed(void);
extern TqGrant *tq_grants_all(int *found);
extern bool tq_grants_are_partial(void);
extern uint64 tq_grants_delete_of_dropped_roles(void);

#define TQ_SECRET_BYTES 32

/* A secret. */
typedef struct TqSecret
{
	TimestampTz since;
	TimestampTz until; /* when what it signed is refused; 0: it signs */
	uint8 bytes[TQ_SECRET_BYTES];
} TqSecret;

extern const TqSecret *tq_secrets(int *n);
extern const TqSecret *tq_secret_current(void);
extern void tq_secret_changes(void);

typedef struct TqAuditRow
{
	TimestampTz at;
	const char *session_role;
	const char *role;
	char **clients; /* NULL: no credentials */
	int nclients;
	const char *function;
	TqSlug *tasks; /* NULL: none */
	int32 *runs;   /* NULL: none, otherwise one for each task */
	int n;
	Jsonb *arguments;
} TqAuditRow;

/* What a role may have at most. */
typedef struct TqQuota
{
	const char *setting;
	const int *limit;
	const char *what;
	const char *way_out; /* how a role makes room */
} TqQuota;

extern void tq_quota_refuse(const TqQuota *quota, const char *role,
							const char *queue, int64 present);
extern void tq_quota_check(const char *setting);

extern void tq_audit_insert(const TqAuditRow *row);
extern int tq_audit_delete(TimestampTz before, int max);

/* ---- shard_table.c: the buckets of this database ---- */

/* The buckets of a database that is a shard. */
typedef struct TqOwnBuckets
{
	bool has[TQ_SLUG_BUCKETS];
	int n;
	int16 list[TQ_SLUG_BUCKETS]; /* the n that it has, in order */
} TqOwnBuckets;

extern void tq_shard_changed(void);
extern void tq_shard_reload(void);
extern bool tq_shard_is_set(void);
extern const TqOwnBuckets *tq_shard_buckets(void);
extern bool tq_shard_is_settled(FullTransactionId change);

#endif /* TQ_REGISTRY_H */
