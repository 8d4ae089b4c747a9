/*
 * main.c
 *	  The loop, signals, and the end of tq-worker.
 *
 * Each turn does what is due, and waits for what is to come.  A signal is a byte
 * in a pipe, which the loop reads.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "worker.h"

#define REPORT_PATIENCE 30000 /* for the last reports */
#define STOP_MARGIN 5000

const char *const program_name = "tq-worker";
Moment now;
bool stopping;

static int exit_status;
static int signal_pipe[2];
static Moment stop_at = NEVER;    /* when commands have to stop */
static Moment give_up_at = NEVER; /* when reports have no more time */

/* ---- what the loop waits for ---- */

typedef struct Watch
{
	void (*ready)(void *, short);
	void *subject;
} Watch;

static struct pollfd *fds;
static Watch *watches;
static int nwatches;
static int watches_room;
static Moment next_turn;

/* Has the loop call a function when a descriptor is ready. */
void
watch(int fd, short events, void (*ready)(void *, short), void *subject)
{
	if (nwatches == watches_room)
	{
		watches_room = watches_room == 0 ? 16 : 2 * watches_room;
		fds = realloc(fds, watches_room * sizeof(*fds));
		watches = realloc(watches, watches_room * sizeof(*watches));
		if (fds == NULL || watches == NULL)
			abort();
	}
	fds[nwatches] = (struct pollfd){.fd = fd, .events = events};
	watches[nwatches++] = (Watch){.ready = ready, .subject = subject};
}

/* Has the loop turn at this moment at the latest. */
void
wake_at(Moment moment)
{
	if (moment < next_turn)
		next_turn = moment;
}

/* Claims end while the machine sleeps, too. */
static Moment
read_clock(void)
{
#ifdef CLOCK_BOOTTIME
	static const clockid_t clock = CLOCK_BOOTTIME;
#else
	static const clockid_t clock = CLOCK_MONOTONIC;
#endif
	struct timespec time;

	clock_gettime(clock, &time);
	return (Moment) time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* ---- signals ---- */

static void
note_signal(int number)
{
	int before = errno;
	char byte = (char) number;
	ssize_t n = write(signal_pipe[1], &byte, 1);

	(void) n; /* a full pipe wakes the loop, too */
	errno = before;
}

/* SIGTERM or SIGINT: the second one does not wait. */
static void
asked_to_stop(void)
{
	log_line(LOG_INFO, NULL,
			 stopping ? "stops at once"
					  : "stops when its commands have ended");
	if (!stopping)
	{
		stop_worker(0);
		return;
	}
	stop_at = now;
	jobs_give_back();
	for (int i = 0; i < options.jobs; i++)
		process_stop(&processes[i], now);
}

static void
take_signal(int number)
{
	if (number == SIGTERM || number == SIGINT)
		asked_to_stop();
	else if (number == SIGHUP)
		database_renew();
	else if (number == SIGUSR1)
		service_describe();
}

static void
signals_are_there(void *subject, short events)
{
	char numbers[64];
	ssize_t n = read(signal_pipe[0], numbers, sizeof(numbers));

	for (ssize_t i = 0; i < n; i++)
		take_signal(numbers[i]);
	processes_reap();
}

static void
catch_signals(void)
{
	static const int caught[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD};
	struct sigaction action = {.sa_handler = note_signal,
							   .sa_flags = SA_RESTART | SA_NOCLDSTOP};
	sigset_t none;

	if (pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) != 0)
		exit(EX_OSERR);
	for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		sigaction(caught[i], &action, NULL);
	action.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &action, NULL);
	sigaction(SIGXFSZ, &action, NULL); /* its own files are full */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* ---- the end ---- */

/* Has the worker claim no more, and end when all is reported. */
void
stop_worker(int status)
{
	if (stopping)
		return;
	stopping = true;
	exit_status = status;
	stop_at = now + options.stop_timeout;
	service_stopping(options.stop_timeout + options.kill_after +
					 REPORT_PATIENCE + STOP_MARGIN);
	wake_at(now);
}

/* Gives back what has not begun; when its time is over, also what has. */
static void
work_on_stop(void)
{
	if (!stopping)
		return;
	if (now < stop_at)
	{
		jobs_give_back_ready("the worker ends");
		wake_at(stop_at);
		return;
	}
	jobs_give_back();
	for (int i = 0; i < options.jobs; i++)
		process_stop(&processes[i], now + options.kill_after);
}

/* Returns whether nothing is left to be done. */
static bool
is_finished(void)
{
	bool idle = jobs_first() == NULL && !calls_claim();

	if (idle && !stopping &&
		((options.drain && calls_found_nothing()) || calls_had_enough()))
		stop_worker(0);
	if (!stopping || !processes_are_gone())
		return false;
	if (idle)
		return true;
	if (give_up_at == NEVER)
		give_up_at = now + REPORT_PATIENCE;
	wake_at(give_up_at);
	if (now < give_up_at)
		return false;
	log_line(LOG_ERROR, NULL, "there is no database to report to");
	exit_status = EX_UNAVAILABLE;
	return true;
}

/* ---- the loop ---- */

/* Waits for what comes next, and does what it asks for. */
static void
wait_for_events(void)
{
	Moment pause = next_turn == NEVER ? -1 : next_turn - now;
	int n;

	if (pause > 60000)
		pause = 60000;
	n = poll(fds, nwatches, pause < 0 && next_turn != NEVER ? 0 : (int) pause);
	now = read_clock();
	for (int i = 0; i < nwatches && n > 0; i++)
		if (fds[i].revents != 0)
			watches[i].ready(watches[i].subject, fds[i].revents);
}

/* Does all that is due, and says what to wait for. */
static bool
turn(void)
{
	nwatches = 0;
	next_turn = NEVER;
	work_on_stop();
	processes_work();
	jobs_work();
	calls_send();
	service_work();
	if (is_finished())
		return false;
	watch(signal_pipe[0], POLLIN, signals_are_there, NULL);
	database_watch();
	processes_watch();
	return true;
}

/*
 * Keeps descriptors 0 to 3, which commands have, for them, and what the worker has
 * inherited from them.
 */
static void
set_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= 3);
	for (fd = 3; fd < 1024; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
}

int
main(int argc, char **argv)
{
	options_read(argc, argv);
	now = read_clock();
	set_descriptors();
	catch_signals();
	calls_init();
	database_init();
	processes_init();
	service_init();
	while (turn())
		wait_for_events();
	service_end();
	return exit_status;
}
