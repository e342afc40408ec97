"""The kit as a static site: a living cluster, the course and the documentation, `kafka-ctl site`.

pins       exact versions and hashes of everything that is downloaded (`pins.toml`)
fetch      pip and npm get it, from whatever registries they are configured with
wheels     the kit's own wheel, and what Pyodide must know of each
lessons    which cells of which notebooks can run in a browser, and what the others say
documents  Markdown, code and stories as pages; what the search knows of them
figures    stories as films that lie in a page
try_page   the cluster that can be clicked: as Python opens it, before Python is there
layout     what all pages have around them
build      puts the site together
serve      serves it on 127.0.0.1
page/      the start page, the try-it page, the search, and the scripts of all pages
"""
