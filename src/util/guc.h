/*
 * guc.h
 *	  Settings of tq.
 */
#ifndef TQ_GUC_H
#define TQ_GUC_H

extern int tq_claim_timeout;  /* ms */
extern int tq_max_deadline;   /* s */
extern int tq_deadline_delay; /* ms */
extern int tq_max_runs;
extern int tq_max_dependencies;
extern int tq_expire_batch;
extern int tq_max_inline_artifact;    /* bytes */
extern int tq_message_retention;      /* s */
extern int tq_subscription_retention; /* s */
extern int tq_retain_completed;       /* s, as the next two */
extern int tq_retain_failed;
extern int tq_retain_dead_letters;
extern int tq_publish_interval; /* ms */
extern int tq_seen_interval;    /* ms */
extern int tq_queue_slots;
extern int tq_counted_queues;
extern int tq_counted_group; /* entries of the claim cursor */
extern int tq_max_payload;   /* bytes, as the next three */
extern int tq_max_definition;
extern int tq_max_tags;
extern int tq_max_extra;
extern int tq_max_batch;
extern int tq_max_wait;    /* ms */
extern int tq_max_waiters; /* 0: no limit, as the next three */
extern int tq_max_subscriptions;
extern int tq_max_bindings;
extern int tq_max_group_tasks;
/* Values of tq.credentials. */
typedef enum TqCredentialsSetting
{
	TQ_CREDENTIALS_AUTO,
	TQ_CREDENTIALS_ON,
	TQ_CREDENTIALS_OFF
} TqCredentialsSetting;

extern int tq_credentials; /* a TqCredentialsSetting */
extern bool tq_maintenance;
extern bool tq_publish_retried_exceptions;
extern int64 tq_clock_offset; /* us */

/* What NOTIFY carries: values of tq.notify_payload. */
typedef enum TqNotifyPayload
{
	TQ_NOTIFY_FULL,
	TQ_NOTIFY_IDS,
	TQ_NOTIFY_OFF
} TqNotifyPayload;

extern int tq_notify_payload; /* a TqNotifyPayload */

/* Which calls the audit trail shows: values of tq.audit. */
typedef enum TqAuditSetting
{
	TQ_AUDIT_OFF,
	TQ_AUDIT_OPERATORS,
	TQ_AUDIT_ALL
} TqAuditSetting;

extern int tq_audit;           /* a TqAuditSetting */
extern int tq_audit_retention; /* s */

extern void tq_guc_define(void);

#endif /* TQ_GUC_H */
