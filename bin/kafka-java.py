"""The process behind kafka-run-class.sh: ``kafka-java.py CLASS [opts]``."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from kafka08 import compiled

if __name__ == "__main__":
    compiled.activate()
    from tools.run_class import main

    sys.exit(main(sys.argv[1:]))
