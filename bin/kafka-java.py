"""The process behind kafka-run-class.sh: ``kafka-java.py CLASS [opts]``."""

import gc
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from kafka08 import compiled

if __name__ == "__main__":
    gc.disable()  # until all is imported: see tools.run_class
    compiled.activate()
    from tools.run_class import main

    sys.exit(main(sys.argv[1:]))
