from retort import main

main()
