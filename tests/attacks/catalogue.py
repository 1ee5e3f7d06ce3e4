"""All attacks, in the order in which they are run."""

import bombs
import connections
import floods
import frames
import garbage
import names
import partial
import slow_http
import storms
import unread

ATTACKS = [attack for module in (connections, unread, floods, partial, slow_http, bombs, garbage,
                                 frames, names, storms) for attack in module.ATTACKS]
BY_NAME = {attack.name: attack for attack in ATTACKS}
