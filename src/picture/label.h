/*
 * label.h
 *	  Text of users in pictures: made safe to show, and escaped.
 */
#ifndef TQ_LABEL_H
#define TQ_LABEL_H

#include "lib/stringinfo.h"

extern char *tq_label(const char *text, int max);
extern char *tq_label_lines(const char *text, int max);
extern char *tq_label_pattern(const char *name, bool without_suffix);
extern void tq_label_html(StringInfo out, const char *label);
extern void tq_label_dot(StringInfo out, const char *label);
extern void tq_label_mermaid(StringInfo out, const char *label);
extern void tq_label_pad(StringInfo out, const char *label, int columns);

#endif /* TQ_LABEL_H */
