/*
 * worker.h
 *	  What the files of tq-worker offer to one another.
 *
 * The program is one thread around poll().  options.c reads what it shall do;
 * main.c has the loop, signals and the end.  database.c has the connections,
 * calls.c what is asked of the database.  job.c follows a run from its claim to
 * its report, process.c starts and reads commands, serve.c speaks with those
 * that stay.  service.c says what the worker does to systemd and node_exporter.
 * program.h has what it shares with tq-web.
 */
#ifndef TQ_WORKER_H
#define TQ_WORKER_H

#include <libpq-fe.h>
#include <poll.h>
#include <signal.h>
#include <sys/types.h>

#include "program.h"

/* As sysexits.h has them. */
#define EXIT_USAGE 2
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND 127

typedef struct Job Job;
typedef struct Process Process;

/* ---- options.c: what the command line and the file say ---- */

typedef struct Options
{
	char *dbname;
	char **queues;
	int nqueues;
	char *group;
	char *id;
	int jobs;
	int batch;
	bool once;
	bool drain;
	bool serve;
	bool keep_log;
	int log_limit;   /* bytes */
	char *claim_for; /* an interval, or NULL */
	int kill_after;  /* milliseconds, as the next */
	int stop_timeout;
	char *metrics;
	char **command;
	int ncommand;
	char *program; /* the command's file */
	char **fields; /* of payloads, which the command's arguments name */
	int nfields;
} Options;

extern Options options;
extern void options_read(int argc, char **argv);
extern char **options_arguments(const Job *job);

/* ---- main.c: the loop ---- */

extern bool stopping;
extern void stop_worker(int exit_status);
extern void watch(int fd, short events, void (*ready)(void *, short),
				  void *subject);
extern void wake_at(Moment moment);

/* ---- database.c: connections ---- */

#define PARAMETERS 8

typedef enum Statement
{
	SQL_VERSION,
	SQL_CHANNEL,
	SQL_LISTEN,
	SQL_DECLARE,
	SQL_CLAIM,
	SQL_RESOLVE_AND_CLAIM,
	SQL_RESOLVE,
	SQL_RECLAIM,
	SQL_PROGRESS,
	SQL_ARTIFACT,
	SQL_DEFER,
	STATEMENTS
} Statement;

/* A call of the database.  It is done with NULL if its answer is lost. */
typedef struct Call
{
	struct Call *next;
	Statement statement;
	char *parameters[PARAMETERS];
	void (*done)(struct Call *call, PGresult *result);
	Job *job;
	Moment began;
	bool waits; /* on purpose, in the database */
} Call;

typedef struct Database Database;

extern Database *main_database;
extern Database *second_database;
extern void database_init(void);
extern void database_open(Database *db);
extern void database_close(Database *db);
extern bool database_is_idle(const Database *db);
extern bool database_waits(const Database *db);
extern bool database_is_taken(const Database *db);
extern Moment database_idle_since(const Database *db);
extern void database_send(Database *db, Call *call);
extern void database_renew(void);
extern void database_watch(void);
extern void database_describe(Buffer *buffer);
extern long database_losses(void);

/* ---- calls.c: what is asked ---- */

/* Columns of a claim; those of reports alone are the first three. */
typedef enum ClaimColumn
{
	CLAIM_OUTCOME,
	CLAIM_TASK_ID,
	CLAIM_RUN_ID,
	CLAIM_PAYLOAD,
	CLAIM_CREDENTIALS,
	CLAIM_LASTS, /* milliseconds */
	CLAIM_TAKEN_UNTIL,
	CLAIM_QUEUE,
	CLAIM_NAME,
	CLAIM_ATTEMPT,
	CLAIM_DEADLINE,
	CLAIM_EXPIRES,
	CLAIM_TRACEPARENT,
	CLAIM_RETRIES_LEFT,
	CLAIM_FIELDS /* options.nfields of them */
} ClaimColumn;

extern const char *calls_sql(Statement statement);
extern void calls_init(void);
extern void calls_begin(Database *db);
extern Call *call_new(Statement statement, Job *job,
					  void (*done)(Call *, PGresult *));
extern void call_free(Call *call);
extern void call_enqueue(Call *call, bool first);
extern void calls_send(void);
extern void calls_look_again(void);
extern void calls_pause(void);
extern void calls_go_on(void);
extern bool calls_are_closed(void);
extern bool calls_claim(void);
extern bool calls_found_nothing(void);
extern bool calls_had_enough(void);
extern void calls_notified(const char *payload);
extern bool result_is_lost(const PGresult *result);
extern bool result_is_good(const PGresult *result);
extern const char *result_state(const PGresult *result);
extern const char *result_error(const PGresult *result);

/* ---- job.c: a run ---- */

typedef enum JobState
{
	JOB_READY, /* claimed, not started */
	JOB_RUNNING,
	JOB_ENDED,     /* to be reported */
	JOB_REPORTING, /* a report is under way */
	JOB_STATES
} JobState;

struct Job
{
	Job *next;
	JobState state;
	char *task_id;
	char *run_id;
	char *queue;
	char *payload;
	char *credentials;
	char *name;
	char *attempt;
	char *deadline;
	char *taken_until;
	char *traceparent;
	char *expires;
	char *retries_left;
	char **values; /* of options.fields */
	Process *process;
	Moment claimed;
	Moment started;
	Moment ended;
	Moment reclaim_at;
	Moment stop_at; /* its command, unless the claim is prolonged */
	Moment kill_at;
	bool reclaiming;
	bool doubted;      /* the claim may be lost: the database is to say */
	char *doubt;       /* why it may be */
	Moment doubted_at; /* when the database was last asked for that */
	bool lost;         /* the claim is no longer ours */
	bool given_back;   /* because the worker ends */
	bool alone;        /* its report is not to be with others */
	int calls;         /* under way, and not its report */
	int malformed;     /* lines on descriptor 3 */
	int refused;       /* reports that were refused */
	/* how it ended */
	char *reason;
	char *result;  /* JSON */
	char *error;   /* text */
	char *details; /* JSON */
	char *defer;
	/* progress that waits to be sent */
	char *progress; /* JSON */
	bool progressing;
	Moment progress_at;
	Cut output; /* for the artifact log */
	Cut errors; /* the end of standard error */
};

typedef enum Total
{
	TOTAL_COMPLETED,
	TOTAL_FAILED,
	TOTAL_EXCEPTION,
	TOTAL_LOST,
	TOTAL_GIVEN_BACK,
	TOTALS
} Total;

extern long jobs_total[TOTALS];
extern Job *job_new(const PGresult *result, int row);
extern void job_set_state(Job *job, JobState state);
extern Job *jobs_find(const char *task_id, const char *run_id);
extern Job *jobs_first(void);
extern int jobs_count(JobState state);
extern void jobs_work(void);
extern void job_return(Job *job);
extern void job_lose(Job *job, const char *why);
extern void job_line(Job *job, char *line);
extern void job_end(Job *job, const char *reason, const char *error);
extern void job_end_status(Job *job, int status);
extern void job_progress(Job *job, const char *progress);
extern void job_settled(Job *job, const char *outcome);
extern void job_refused(Job *job, const PGresult *result);
extern void job_put_report(Buffer *buffer, const Job *job);
extern void jobs_give_back_ready(const char *why);
extern void jobs_give_back(void);
extern void job_doubt(Job *job, const char *why);
extern void jobs_doubt_all(void);

/* ---- process.c: commands ---- */

typedef enum Stream
{
	STREAM_OUT,
	STREAM_ERR,
	STREAM_CONTROL, /* descriptor 3 */
	STREAMS
} Stream;

struct Process
{
	pid_t pid; /* 0: there is none */
	int in;
	int streams[STREAMS];
	Buffer input; /* for the command */
	size_t written;
	size_t given;          /* bytes of its run's line, with --serve */
	Buffer lines[STREAMS]; /* without an end yet */
	bool skipping[STREAMS];
	bool stopping;
	Moment started;
	Moment kill_at;
	Moment restart_at;
	int pause;
	char *credentials_file;
	int credentials; /* its descriptor */
	Job *job;
};

/* More than the worker has of them open at a time. */
#define DESCRIPTORS (100 + 10 * options.jobs)

extern Process *processes; /* options.jobs of them */
extern void block_signals(sigset_t *before);
extern void reset_signals(void);
extern void processes_init(void);
extern Process *processes_free_one(void);
extern int process_start(Process *process, Job *job);
extern int process_spawn(Process *process, const Job *job);
extern void process_feed(Process *process);
extern void process_close_input(Process *process);
extern void process_stop(Process *process, Moment kill_at);
extern void processes_reap(void);
extern void processes_work(void);
extern void processes_watch(void);
extern bool processes_are_gone(void);

/* ---- serve.c: commands that stay ---- */

extern void serve_give(Process *process, const Job *job);
extern void serve_answer(Process *process, const char *line);
extern void serve_ended(Process *process, int status, bool untouched);
extern void serve_keep(Process *process);
extern bool serve_takes(const Process *process);
extern bool serve_takes_any(void);

/* ---- service.c: systemd, metrics ---- */

extern void service_init(void);
extern void service_ready(void);
extern void service_stopping(Moment patience);
extern void service_work(void);
extern void service_describe(void);
extern void service_end(void);

#endif
