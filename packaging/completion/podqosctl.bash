# bash completion for podqosctl(1)

_podqosctl_words() {
  case "$1" in
    explain) echo "-f --filename -o --output --batch --driver --cgroup-version --node-memory --weight-formula --color --config --help" ;;
    annotate) echo "-f --filename -o --output --for --container --bundle --help" ;;
    status | tree) echo "-o --output --color --config --help" ;;
    reconcile) echo "-n --dry-run -q --quiet --converge -o --output --config --help" ;;
    resize) echo "--container --requests --limits --runtime --runtime-root -o --output --config --help" ;;
    configure) echo "containerd crio podman docker --method -n --dry-run --undo --restart --root --program --engine-version -o --output --color --help" ;;
    config) echo "show fields check runtimes --config --help" ;;
    config-show | config-fields | config-check | config-runtimes) echo "--config --help" ;;
    version) echo "--help" ;;
    *) echo "explain annotate status tree reconcile resize configure config version --config --version --help" ;;
  esac
}

# The subcommand that stands in front of the cursor, "config-show" for the nested ones.
_podqosctl_command() {
  local i=1 command=""
  while ((i < COMP_CWORD)); do
    case "${COMP_WORDS[i]}" in
      --config)
        ((i++))
        [[ ${COMP_WORDS[i]} == "=" ]] && ((i++))
        ;;
      -*) ;;
      explain | annotate | status | tree | reconcile | resize | configure | version)
        echo "${COMP_WORDS[i]}"
        return
        ;;
      config) command=config ;;
      show | fields | check | runtimes)
        if [[ $command == config ]]; then
          echo "config-${COMP_WORDS[i]}"
          return
        fi
        ;;
    esac
    ((i++))
  done
  echo "$command"
}

_podqosctl() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command words=""
  # Bash takes "--driver=x" for three words.
  if [[ $cur == "=" ]]; then
    cur=""
  elif [[ $prev == "=" ]] && ((COMP_CWORD >= 2)); then
    prev=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  command=$(_podqosctl_command)
  COMPREPLY=()
  case "$prev" in
    --for) words="podman4" ;;
    --method) words="wrapper nri hooks" ;;
    --driver) words="cgroupfs systemd" ;;
    --cgroup-version) words="1 2" ;;
    --weight-formula) words="linear log" ;;
    --color) words="auto always never" ;;
    -o | --output)
      case "$command" in
        annotate) words="manifest annotations" ;;
        *) words="text json" ;;
      esac
      ;;
    --node-memory | --container | --converge | --engine-version | --requests | --limits) return ;;
    --bundle | --root | --runtime-root)
      mapfile -t COMPREPLY < <(compgen -d -- "$cur")
      return
      ;;
    -f | --filename | --config | --program | --runtime)
      mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      return
      ;;
  esac
  if [[ -n $words ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
    return
  fi
  if [[ $command == config-check && $cur != -* ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W "$(_podqosctl_words "$command")" -- "$cur")
}

complete -o filenames -F _podqosctl podqosctl
