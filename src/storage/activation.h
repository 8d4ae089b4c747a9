/*
 * activation.h
 *	  Marks a database as used by a client, which is when maintenance
 *	  begins.
 */
#ifndef TQ_ACTIVATION_H
#define TQ_ACTIVATION_H

extern bool tq_activation_is_done(void);
extern bool tq_activation_is_committed(void);
extern void tq_activation_do(void);

extern void tq_call_begin(bool read_only);
extern void tq_call_begin_idle(void);
extern void tq_call_end(void);

#endif /* TQ_ACTIVATION_H */
