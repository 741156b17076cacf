# fish completion for podqosctl(1), which itself says what may come next

function __podqosctl_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    for line in ($words[1] __complete $words[2..-1] "$word" 2>/dev/null)
        switch $line
            case :file :dir
                set -l front (string match -r -- '^--[^=]*=' $word)
                set -l names (__fish_complete_path (string replace -r -- '^--[^=]*=' '' $word))
                string match -q :dir $line; and set names (string match -r '.*/(?=\t|$)' -- $names)
                printf '%s\n' "$front"$names
            case '*'
                echo $line
        end
    end
end

complete -c podqosctl -f -a '(__podqosctl_complete)'
