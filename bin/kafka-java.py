"""The process behind kafka-run-class.sh: ``kafka-java.py CLASS [opts]``."""

import gc
import os
import signal
import sys

packages = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if os.path.basename(packages) == "_home":  # in a wheel, this is kafka08/_home/bin
    packages = os.path.dirname(os.path.dirname(packages))
if packages not in sys.path:
    sys.path.insert(0, packages)

if __name__ == "__main__":
    # Until the tool looks after it, an interrupt just ends the process: no traceback of an import.
    # Before this line kafka-run-class.sh has it blocked, as Python begins with a traceback.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])

    from kafka08 import builds

    gc.disable()  # until all is imported: see tools.run_class
    builds.activate()
    from tools.run_class import main

    sys.exit(main(sys.argv[1:]))
