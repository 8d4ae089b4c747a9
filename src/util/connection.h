/*
 * connection.h
 *	  Refuses settings of tq that a client gives when it connects.
 */
#ifndef TQ_CONNECTION_H
#define TQ_CONNECTION_H

extern void tq_connection_check(void);

#endif /* TQ_CONNECTION_H */
