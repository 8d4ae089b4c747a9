/*
 * program.h
 *	  What the programs share: text.c has memory, buffers and JSON, log.c writes
 *	  lines, notify.c speaks to systemd.
 *
 * Each program has its name and its clock for them.
 */
#ifndef TQ_PROGRAM_H
#define TQ_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEVER INT64_MAX

/* Milliseconds of a clock that is never set. */
typedef int64_t Moment;

typedef struct Job Job; /* of a worker */

extern const char *const program_name;
extern Moment now; /* since the program last looked */

/* ---- text.c: memory, buffers, JSON ---- */

typedef struct Buffer
{
	char *data; /* ends with a NUL, unless it is NULL */
	size_t length;
	size_t room;
} Buffer;

/* The beginning and the end of a text; what is between is cut. */
typedef struct Cut
{
	Buffer head;
	Buffer tail;
	size_t head_limit;
	size_t tail_limit;
	size_t lost;
} Cut;

extern void *allocate(size_t size);
extern char *copy_text(const char *text);
extern char *format_text(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
extern void buffer_add(Buffer *buffer, const char *data, size_t length);
extern void buffer_put(Buffer *buffer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
extern void buffer_free(Buffer *buffer);
extern void cut_add(Cut *cut, const char *data, size_t length);
extern char *cut_text(const Cut *cut);
extern void cut_free(Cut *cut);
extern bool text_is_clean(const char *text, size_t length);
extern char *clean_text(const char *text, size_t length);
extern void json_put_text(Buffer *buffer, const char *text);
extern void json_put_key(Buffer *buffer, const char *key, const char *text);
extern const char *json_value_end(const char *text);
extern bool json_is_valid(const char *text);
extern char *json_only_member(const char *text, char **value);

/* ---- log.c: lines ---- */

typedef enum LogLevel
{
	LOG_DEBUG,
	LOG_INFO,
	LOG_WARNING,
	LOG_ERROR
} LogLevel;

extern void log_use_json(bool json);
extern void log_show_debug(void);
extern void log_line(LogLevel level, const Job *job, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
extern void log_output(int fd, const Job *job, const char *line,
					   size_t length);

/* ---- notify.c: systemd ---- */

extern bool notify_systemd(const char *text);

#endif
