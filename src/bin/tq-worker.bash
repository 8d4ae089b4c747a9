# Completion for tq-worker(1) in bash.
_tq_worker() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} i
	for ((i = 1; i < COMP_CWORD; i++)); do
		if [ "${COMP_WORDS[i]}" = -- ]; then
			mapfile -t COMPREPLY < <(compgen -o default -A command -- "$cur")
			return
		fi
	done
	case $prev in
		--config | -c | --metrics | -m) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
		--log-format) mapfile -t COMPREPLY < <(compgen -W 'text json' -- "$cur") ;;
		*) mapfile -t COMPREPLY < <(compgen -W '--queue --dbname --jobs --batch --serve --once --drain --log
			--log-limit --log-format --claim-for --kill-after --stop-timeout --group --id --metrics --config
			--verbose --help --version' -- "$cur") ;;
	esac
}
complete -o default -F _tq_worker tq-worker
