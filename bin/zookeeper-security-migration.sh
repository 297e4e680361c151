#!/usr/bin/env bash
exec "$(dirname "$(readlink -f "$0")")/kafka-run-class.sh" kafka.admin.ZkSecurityMigrator "$@"
