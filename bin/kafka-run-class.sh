#!/usr/bin/env bash
# Runs a class of the original by its name: the module that tools/run_class.py keeps for it.
# After exec the shell's pid is the program's.

usage() {
  echo "USAGE: $0 [-daemon] [-name servicename] [-loggc] classname [opts]"
  exit "${1:-1}"
}

[ $# -ge 1 ] || usage
[ "$1" != --help ] || usage 0

# They are for the Python of an application that runs the scripts, which may be another release.
# Classes of one's own are looked for in CLASSPATH.
unset PYTHONPATH PYTHONHOME PYTHONSTARTUP

# An interrupt ends the shell at any moment, as it has no trap and waits for no child: while it waits,
# bash may lose an interrupt, and with a trap send it to itself without end. So it reads from them,
# and so do the scripts that call this one.
IFS= read -rd '' script < <(readlink -f "$0")
script=${script%$'\n'}
bin_dir=${script%/*}
base_dir=${bin_dir%/*}

# In a wheel this is kafka08/_home/bin, and installed packages are not written to.
logs=$base_dir/logs
[ "${base_dir##*/}" != _home ] || logs=${XDG_STATE_HOME:-~/.local/state}/kafka08/logs
export LOG_DIR=${LOG_DIR:-$logs}
[ -d "$LOG_DIR" ] || mkdir -p "$LOG_DIR" || echo "Name another directory in LOG_DIR" >&2

export KAFKA_LOG4J_OPTS=${KAFKA_LOG4J_OPTS:--Dlog4j.configuration=file:$base_dir/config/tools-log4j.properties}

daemon=
name=
while [ $# -gt 0 ]; do
  case $1 in
    -name)
      name=$2
      shift $(($# > 1 ? 2 : 1))
      ;;
    -loggc) # there is no garbage collector to log
      shift
      ;;
    -daemon)
      daemon=true
      shift
      ;;
    *)
      break
      ;;
  esac
done

[ $# -ge 1 ] || usage

# The commands that pip installs name theirs.
python=${KAFKA08_PYTHON:-$base_dir/.venv/bin/python}
unset KAFKA08_PYTHON
if [ ! -x "$python" ]; then
  python=python3
  if ! (cd / && python3 -c 'import gevent, kafka08, kazoo') 2> /dev/null; then
    echo "No Python with kafka08 found: run 'make setup' in $base_dir" >&2
    exit 1
  fi
fi

# Python begins with a traceback for interrupts: they wait until kafka-java.py has said otherwise.
block=()
if read -r < <(env --block-signal=INT echo yes 2> /dev/null); then
  block=(env --block-signal=INT)
fi

# The launcher's name puts "java" into the process list, where sites and kafka-server-stop.sh look
# for it next to the class and the configuration file.
if [ "$daemon" = true ]; then
  [ -n "$name" ] || usage
  nohup "$python" -u "$bin_dir/kafka-java.py" "$@" > "$LOG_DIR/$name.out" 2>&1 < /dev/null &
else
  exec "${block[@]}" "$python" -u "$bin_dir/kafka-java.py" "$@"
fi
