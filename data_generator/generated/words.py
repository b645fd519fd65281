"""A list of English words from which names and texts are made."""

_TEXT = """
    able account acid across action active actor address adult advice affair afternoon agency agent
    air airport alarm album alert alley almond amber anchor angle animal answer anthem apple april
    arch area arena argument arm army arrow art article ash aspect asset atlas atom attempt august
    aunt author autumn avenue average award axis baby back badge baker balance ball band bank bar
    barn base basin basket bath battery bay beach beam bean bear beauty bed bee bell belt bench
    berry bicycle bill bird birth bishop blade block blood bloom board boat body bold bolt bond bone
    book border bottle bottom boundary bowl box boy branch brass bread break breath brick bridge
    bright bronze brook brother brush bucket budget building bulb bundle bureau bus business butter
    button cabin cable cake calm camera camp canal candle canvas canyon cap capital captain car card
    care cargo carpet carrier case castle cat cause cave cedar cell center century chain chair chalk
    chamber chance change channel chapter charge charter chart check cheese chef cherry chest chief
    child choice church cinema circle city claim class clay clean clear clerk client climate clock
    cloth cloud clover club coach coal coast coat code coffee coin cold collar college color column
    comet common company concert control cook copper coral core corn corner cost cotton council
    count country county couple course court cousin cover craft crane cream credit creek crew crop
    cross crowd crown crystal cup current curtain curve custom customer cycle dairy dance danger
    data date daughter dawn day deal dean debt deck deep deer degree delta demand depot desert
    design desk detail dew diamond diary dinner direct dish district doctor dog dollar domain door
    double dragon drama dream dress drift drink driver drop drum dry duck dust duty eagle early
    earth east easy echo edge editor effect effort egg elder electric element elm ember empire
    energy engine entry equal error estate evening event exact example exchange exit expert export
    fabric face fact factor factory fair fall falcon family farm fast father favor feather feature
    fellow fence fern ferry festival field figure file film final finger fire firm first fish flag
    flame flat fleet flight floor flower flute focus fog folder food forest forge fork form fort
    fortune forum fountain fox frame free fresh friend frost fruit fuel full fund future gallery
    game garden gate gentle giant gift ginger girl glacier glass globe glove goal gold good grain
    grand granite grape grass gravel great green grid ground group grove guard guest guide guitar
    gulf habit hair half hall hammer hand harbor hard harvest hat hawk hazel head health heart heat
    heavy hedge height helmet herb hero heron hill history holiday home honey honor hook hope
    horizon horn horse hospital host hotel hour house human humble hundred hunter ice idea image
    import inch income index industry inner insect island item ivory jacket january jasmine jewel
    job journal journey judge juice july jungle junior jury kernel kettle key kind king kitchen kite
    knight knot label lace ladder lady lake lamp land lane language large laser late laurel law
    leader leaf league leather legend lemon lens lesson letter level library light lily lime line
    linen lion list little local lodge logic long loop lord lotus lower lucky lunar lunch machine
    magnet maiden mail main major manner manor map maple marble march margin marine mark market
    marsh mason master match matter meadow meal measure medal medium member memory mentor menu
    merchant mercury merit message metal method middle mild mile milk mill mind mineral minor mint
    minute mirror mobile model modern moment money monitor month moon moral morning moss mother
    motion motor mountain mouse mouth movie museum music
"""

WORDS: tuple[str, ...] = tuple(_TEXT.split())
"""Distinct, lower-case, of 3 to 9 ASCII letters."""
