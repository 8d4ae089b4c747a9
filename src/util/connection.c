/*
 * connection.c
 *	  Refuses settings of tq that a client gives when it connects.
 *
 * Without shared_preload_libraries the server does not know these settings when
 * a client connects, and takes what the client gives (PGOPTIONS, a connection
 * string) in place of what is set for the role, the database or the server.  When
 * the library is loaded, it rejects the value of the client, and the setting gets
 * its default: a role could evade its limits that way.  With
 * shared_preload_libraries the server itself refuses such a connection.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"

#include "compat.h"
#include "util.h"

#define PREFIX "tq."

pg_noreturn static void
refuse(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied to set parameter \"%s\"", name),
			 errdetail(
				 "The connection gives it, and only a superuser may set it."),
			 errhint(
				 "Leave it out of the connection string and of PGOPTIONS.")));
}

/*
 * Returns whether this is a setting of tq that only superusers may set, and the
 * client of a session that is none has given it.
 */
static bool
is_given(const struct config_generic *setting)
{
	return (setting->flags & GUC_CUSTOM_PLACEHOLDER) != 0 &&
		   pg_strncasecmp(setting->name, PREFIX, strlen(PREFIX)) == 0 &&
		   pg_strcasecmp(setting->name, "tq.credentials") != 0 &&
		   setting->reset_source == PGC_S_CLIENT &&
		   setting->reset_scontext != PGC_SU_BACKEND;
}

/*
 * Raises 42501 if the client of this session has given a setting of tq that it
 * may not set.  Called before the settings are defined.
 */
void
tq_connection_check(void)
{
	int n;
	struct config_generic **settings = TqSettings(&n);

	for (int i = 0; i < n; i++)
	{
		if (is_given(settings[i]))
			refuse(settings[i]->name);
	}
}
