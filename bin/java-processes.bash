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
