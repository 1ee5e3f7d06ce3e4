"""All attacks, in the order in which they are run."""

import bombs
import connections
import floods
import frames
import garbage
import headers
import idle
import names
import partial
import resets
import slow_http
import storms
import tls_handshakes
import tls_records
import unknown_calls
import unread

ATTACKS = [attack for module in (connections, unread, floods, partial, slow_http, bombs, garbage,
                                 headers, frames, resets, names, storms, tls_handshakes, tls_records,
                                 unknown_calls, idle) for attack in module.ATTACKS]
BY_NAME = {attack.name: attack for attack in ATTACKS}
