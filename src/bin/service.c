/*
 * service.c
 *	  What systemd and node_exporter know of the worker.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker.h"

#define METRICS_PAUSE 15000
#define STATUS_PAUSE 5000

static const char *const total_names[TOTALS] = {
	[TOTAL_COMPLETED] = "completed",   [TOTAL_FAILED] = "failed",
	[TOTAL_EXCEPTION] = "exception",   [TOTAL_LOST] = "lost",
	[TOTAL_GIVEN_BACK] = "given_back",
};

static Moment watchdog_pause;
static Moment watchdog_at = NEVER;
static Moment metrics_at = NEVER;
static Moment status_at = NEVER;
static bool is_ready;
static long runs_said = -1;

void
service_init(void)
{
	const char *watchdog = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");

	if (watchdog != NULL && (pid == NULL || atol(pid) == (long) getpid()))
	{
		watchdog_pause = atoll(watchdog) / 2000;
		watchdog_at = now;
	}
	if (options.metrics != NULL)
		metrics_at = now;
}

/* The worker can claim. */
void
service_ready(void)
{
	if (is_ready)
		return;
	is_ready = true;
	log_line(LOG_INFO, NULL, "%s/%s works on %s%s", options.group, options.id,
			 options.queues[0], options.nqueues > 1 ? " and others" : "");
	status_at = notify_systemd("READY=1") ? now : NEVER;
}

/* The worker ends, which may take so long, whatever TimeoutStopSec says. */
void
service_stopping(Moment patience)
{
	char *text = format_text("STOPPING=1\nEXTEND_TIMEOUT_USEC=%lld",
							 (long long) patience * 1000);

	notify_systemd(text);
	free(text);
}

/* Returns how many runs have ended here. */
static long
runs_ended(void)
{
	long n = 0;

	for (int i = 0; i < TOTALS; i++)
		n += jobs_total[i];
	return n;
}

static void
tell_status(void)
{
	char *text =
		format_text("STATUS=%d running, %ld completed, %ld failed",
					jobs_count(JOB_RUNNING), jobs_total[TOTAL_COMPLETED],
					jobs_total[TOTAL_FAILED] + jobs_total[TOTAL_EXCEPTION]);

	notify_systemd(text);
	free(text);
}

static void
put_metrics(Buffer *text)
{
	buffer_put(text, "# HELP tq_worker_runs_total Runs that have ended.\n"
					 "# TYPE tq_worker_runs_total counter\n");
	for (int i = 0; i < TOTALS; i++)
		buffer_put(text,
				   "tq_worker_runs_total{worker=\"%s/%s\",end=\"%s\"} %ld\n",
				   options.group, options.id, total_names[i], jobs_total[i]);
	buffer_put(text,
			   "# HELP tq_worker_running Commands that run.\n"
			   "# TYPE tq_worker_running gauge\n"
			   "tq_worker_running{worker=\"%s/%s\"} %d\n"
			   "# HELP tq_worker_jobs Commands that may run at a time.\n"
			   "# TYPE tq_worker_jobs gauge\n"
			   "tq_worker_jobs{worker=\"%s/%s\"} %d\n"
			   "# HELP tq_worker_lost_connections_total Connections that were"
			   " lost or refused.\n"
			   "# TYPE tq_worker_lost_connections_total counter\n"
			   "tq_worker_lost_connections_total{worker=\"%s/%s\"} %ld\n",
			   options.group, options.id, jobs_count(JOB_RUNNING),
			   options.group, options.id, options.jobs, options.group,
			   options.id, database_losses());
}

/* Writes a text into a file that is new, and no link; returns whether it is there. */
static bool
write_new(const char *file, const Buffer *text)
{
	int fd;
	bool good;

	unlink(file); /* of a worker that was killed, with this number */
	fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return false;
	errno = ENOSPC;
	good = write(fd, text->data, text->length) == (ssize_t) text->length;
	return close(fd) == 0 && good;
}

/* Writes the metrics into a new file, which takes the place of the old one. */
static void
write_metrics(void)
{
	char *new = format_text("%s.%d", options.metrics, (int) getpid());
	Buffer text = {0};

	put_metrics(&text);
	if (!write_new(new, &text) || rename(new, options.metrics) != 0)
	{
		log_line(LOG_WARNING, NULL, "%s: %s", options.metrics,
				 strerror(errno));
		unlink(new);
	}
	buffer_free(&text);
	free(new);
}

/* Says what is due. */
void
service_work(void)
{
	if (now >= watchdog_at)
	{
		notify_systemd("WATCHDOG=1");
		watchdog_at = now + watchdog_pause;
	}
	if (now >= metrics_at)
	{
		write_metrics();
		metrics_at = now + METRICS_PAUSE;
	}
	if (now >= status_at && runs_said != runs_ended())
	{
		tell_status();
		runs_said = runs_ended();
		status_at = now + STATUS_PAUSE;
	}
	wake_at(watchdog_at);
	wake_at(metrics_at);
}

/* SIGUSR1: says what the worker does. */
void
service_describe(void)
{
	Buffer text = {0};

	database_describe(&text);
	buffer_put(&text, "%d ready, %d running, %d to be reported",
			   jobs_count(JOB_READY), jobs_count(JOB_RUNNING),
			   jobs_count(JOB_ENDED) + jobs_count(JOB_REPORTING));
	log_line(LOG_INFO, NULL, "%s", text.data);
	buffer_free(&text);
	for (Job *job = jobs_first(); job != NULL; job = job->next)
		if (job->process != NULL)
			log_line(LOG_INFO, job, "runs for %d s as process %d%s",
					 (int) ((now - job->started) / 1000),
					 (int) job->process->pid,
					 job->process->stopping ? ", and is to stop" : "");
}

void
service_end(void)
{
	if (options.metrics != NULL)
		write_metrics();
}
