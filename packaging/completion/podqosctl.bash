# bash completion for podqosctl(1), which itself says what may come next

_podqosctl() {
  local line=${COMP_LINE:0:COMP_POINT} part=$2 words word found
  # Bash takes "--driver=x" and "podman:web" for three words; podqosctl for one.
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  word=${words[-1]}
  [[ $part == [=:] ]] && part=""
  COMPREPLY=()
  while IFS=$'\t' read -r found _; do
    case $found in
      :file | :dir)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -"${found:1:1}" -- "$part")
        ;;
      *) COMPREPLY+=("${found#"${word%"$part"}"}") ;;
    esac
  done < <("$1" __complete "${words[@]:1}" 2>/dev/null)
}

complete -F _podqosctl podqosctl
