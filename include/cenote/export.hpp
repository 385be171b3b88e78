// Which names leave the shared library. Everything else in it is hidden.
#pragma once

#if defined(__GNUC__)
#define CENOTE_API [[gnu::visibility("default")]]
#else
#define CENOTE_API
#endif
