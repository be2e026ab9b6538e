// First, so that liburing's choice of features does not give system types other members than other modules see.
#include <sys/types.h>
#include <sys/eventfd.h>
#include <liburing.h>
