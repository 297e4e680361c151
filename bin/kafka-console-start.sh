#!/usr/bin/env bash

if [ $# -lt 1 ] || [ "$1" = --help ]; then
  echo "USAGE: $0 [-daemon] kafka-console.properties"
  exit $(($# < 1))
fi

IFS= read -rd '' script < <(readlink -f "$0")
bin_dir=${script%/*}

export KAFKA_LOG4J_OPTS=${KAFKA_LOG4J_OPTS:--Dlog4j.configuration=file:$bin_dir/../config/kafka-console-log4j.properties}

daemon=()
if [ "$1" = -daemon ]; then
  daemon=(-daemon)
  shift
fi

exec "$bin_dir/kafka-run-class.sh" "${daemon[@]}" -name kafkaConsole -loggc kafka.console.KafkaConsole "$@"
