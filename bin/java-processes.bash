# Sourced by the scripts that stop servers.

# pattern: the ids of the processes whose command line has it, in any case, and the word java.
java_processes() {
  local directory line words
  for directory in /proc/[0-9]*; do
    words=() # what stays if the process ends meanwhile
    { mapfile -d '' -t words < "$directory/cmdline"; } 2> /dev/null
    line=${words[*]}
    [[ $line == *java* && ${line,,} == *"$1"* ]] && echo "${directory##*/}"
  done
}

# pattern, name of the servers: asks such processes to stop; the exit status is 1 if there are none.
stop_java_processes() {
  local pids
  pids=$(java_processes "$1")
  if [ -z "$pids" ]; then
    echo "No $2 to stop"
    return 1
  fi
  kill -s TERM $pids
}
