/*
 * identifier.h
 *	  Names of queues, workers, schedulers, projects and artifacts.
 */
#ifndef TQ_IDENTIFIER_H
#define TQ_IDENTIFIER_H

/* The rule for an identifier, as errors state it. */
#define TQ_IDENTIFIER_RULE "must be 1 to 38 letters, digits, \"-\" or \"_\""

extern bool tq_is_identifier(const char *value);
extern bool tq_is_task_queue_id(const char *value);
extern bool tq_is_queue_pattern(const char *value);
extern bool tq_is_project_id(const char *value);
extern bool tq_is_printable(const char *value);
extern bool tq_is_artifact_name(const char *value);
extern void tq_check_identifier(const char *what, const char *value);
extern void tq_check_worker_name(const char *what, const char *value);
extern void tq_check_artifact_name(const char *value);
extern char *tq_task_queue_id(const char *what, char *value);
extern char *tq_queue_or_pattern(char *value);

#endif /* TQ_IDENTIFIER_H */
